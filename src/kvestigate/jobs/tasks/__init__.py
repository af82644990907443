"""A task: read from its file, placed, and compiled to the objects that run it."""
