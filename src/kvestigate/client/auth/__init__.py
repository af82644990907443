"""How requests prove who sends them: one kind of credentials a file.

Nothing here opens a connection to an API server, and no secret appears in a repr or message.
"""
