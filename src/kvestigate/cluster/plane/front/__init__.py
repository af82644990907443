"""The server process: listening, the filters before every request, and paths without resources.

A request enters in `server`, is authenticated and authorized there, and goes on to a verb.
`routes` answers discovery, OpenAPI, health and version. `serving` assembles the server and runs it.
"""
