"""The launcher as a server: authentication, the REST API, and serving it."""
