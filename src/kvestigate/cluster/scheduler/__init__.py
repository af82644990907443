"""Gives pods their nodes: what kube-scheduler's default profile would do, over the API alone.

Deciding is pure: `decision` and `preemption` read a `ClusterState` and return values. On which
nodes a pod can be say the filters of `kube.feasibility`; which of these it gets, the scorers in
`plugins`.
`runtime` and `binding` speak to the API server.
"""
