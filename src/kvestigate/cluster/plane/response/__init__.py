"""Answers: stored objects as JSON, YAML, Tables or metadata only, and Status objects for errors."""
