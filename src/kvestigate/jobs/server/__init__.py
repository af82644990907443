"""The launcher as a server: who asks, the REST API, and how it is served."""
