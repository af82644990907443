"""Pods that are kept running: ReplicaSets, Deployments, StatefulSets, DaemonSets, and the
budgets that limit their disruption."""
