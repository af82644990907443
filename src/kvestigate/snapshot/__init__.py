"""What a cluster is like at one moment, and what follows from it.

`snapshot` and `take` read; `capacity` and `gpus` are pure. Nothing here writes to a cluster.
"""
