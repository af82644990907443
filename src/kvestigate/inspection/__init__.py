"""Namespaces, pods, the description of any object, logs, and commands in a pod.

Everything but `exec` only reads. `status` and `describing` are pure.
"""
