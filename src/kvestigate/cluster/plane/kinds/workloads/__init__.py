"""Kinds that make pods, and those that look after their number."""
