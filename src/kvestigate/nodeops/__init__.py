"""Making room: cordon nodes, evict pods, scale Deployments.

Each operation looks first and changes nothing unless its options say `apply`.
"""
