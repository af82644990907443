"""The state of a cluster at one moment: each resource is listed once.

`collect` reads; `capacity` and `gpus` are pure. Nothing here writes to a cluster.
"""
