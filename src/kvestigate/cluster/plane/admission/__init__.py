"""Whether a valid write is let in: built-in rules, then policies and webhooks that users wrote.

`registry` lists the built-in rules in their order. `policies` runs what users stored in the
plane: admission policies in CEL, and webhooks, the only part of a write that waits for
another server.
"""
