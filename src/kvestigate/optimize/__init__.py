"""GPUs that are taken and not used: how they are scattered, what they do, and how to make room.

For operators only: the agents' gateway denies every operation of this package by its name.
"""
