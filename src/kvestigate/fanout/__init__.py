"""One command or one file, on many nodes or pods at once."""
