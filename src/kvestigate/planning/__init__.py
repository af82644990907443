"""Whether a workload fits into what is free now, and where it would go.

Everything but `plan` is pure: nodes, pods and a demand go in, placements come out. A new
strategy is one function and one line in `strategies`.
"""
