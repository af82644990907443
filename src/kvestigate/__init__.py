"""Investigate Kubernetes clusters, run work on them, and carry one with you."""

__version__ = "0.1.0"
