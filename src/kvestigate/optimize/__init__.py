"""GPUs that are allocated and not used: fragmentation, real utilization, and moving pods.

For operators only: the agents' gateway denies every operation of this package by its name.
"""
