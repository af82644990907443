"""What a simulated container does: its command is read and played, and no process runs."""
