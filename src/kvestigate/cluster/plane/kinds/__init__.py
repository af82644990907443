"""What is particular about each kind: defaults, validation, columns. Pure."""
