"""Allocation of devices to ResourceClaims, with structured parameters.

Which devices a set of claims gets on a node follows from slices, classes and the devices that
other claims hold, in the order of kube-scheduler. Pure: nothing here reads or writes a cluster.
"""
