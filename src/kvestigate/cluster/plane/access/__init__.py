"""Authentication and authorization: the user of a request, and whether it may make it."""
