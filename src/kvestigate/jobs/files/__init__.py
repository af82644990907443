"""Local files on their way into tasks and volumes."""
