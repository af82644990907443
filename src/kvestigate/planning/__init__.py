"""Whether a workload fits into the free capacity, and on which nodes.

All modules except `plan` are pure: nodes, pods and a demand in, placements out. A new strategy is
one entry in `strategies`.
"""
