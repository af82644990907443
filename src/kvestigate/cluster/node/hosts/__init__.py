"""Where a node's containers run: one interface, three implementations."""
