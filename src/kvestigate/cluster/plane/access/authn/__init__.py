"""Who is asking: from a request's credentials to a User."""
