"""The verbs of the API, one per file: from a Call to a Response.

`lookup` finds the verb of a request, `writing` has the steps that all writes share, and `managed`
the managed fields. Verbs know nothing of HTTP connections, authentication or routing.
"""
