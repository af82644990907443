"""Reaching the hosts of a cluster's nodes, through the DaemonSet that has a pod on each."""
