"""Gives pods their nodes: what kube-scheduler's default profile would do, over the API alone.

Deciding is pure: `plugins`, `decision` and `preemption` read a `ClusterState` and return values.
`runtime` and `binding` speak to the API server.
"""
