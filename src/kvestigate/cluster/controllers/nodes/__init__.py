"""Nodes that stopped reporting: their taints, and what becomes of their pods."""
