"""Volumes of a user: their claims, and the files on them."""
