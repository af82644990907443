"""The server process: listening, the filters before every request, and paths without resources.

A request enters in `server`, passes `guard` (authentication, impersonation, authorization) and
goes on to a verb. `routes` answers discovery, OpenAPI, health and version. `serving` assembles
the server and runs it.
"""
