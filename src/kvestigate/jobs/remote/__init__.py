"""The launcher through its server: the same interface, from another machine."""
