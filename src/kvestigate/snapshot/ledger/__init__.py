"""The one ledger of GPUs: what each is, how it is offered, who holds it and by what right.

Every figure about GPUs comes from here. GPUs are counted as physical devices; MIG instances and
other partitions, and the replicas of shared devices, are counted beside them. Pure.
"""
