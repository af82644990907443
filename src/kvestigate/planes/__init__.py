"""The planes of a running server, asked for over its API. Knows nothing of how they are served."""
