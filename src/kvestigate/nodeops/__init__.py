"""Cordon and drain nodes, evict pods, scale Deployments.

Each operation only previews its effect unless its options say `apply`.
"""
