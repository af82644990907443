"""The server process: listening, routing, and every answer that is not about one resource.

A request enters in `server`, passes `guard` (who asks, and whether they may) and goes on to a
verb. `routes` answers discovery, OpenAPI, health and version; `serving` starts and stops it all.
"""
