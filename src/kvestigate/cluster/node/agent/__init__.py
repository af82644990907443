"""One node in the cluster: its Node object, its lease, its pods, and many nodes in one process."""
