"""metrics.k8s.io: what nodes and pods use, asked of the nodes' kubelets when somebody wants it."""
