"""The Pod itself: its kind, what may change in it, and its status."""
