"""On which nodes a pod can be: the filters of kube-scheduler's default profile. Pure.

The embedded scheduler decides by these filters, and the toolkit plans by them (`plan`, `optimize`,
`node drain`): a plan and the scheduler cannot disagree about what fits.
"""
