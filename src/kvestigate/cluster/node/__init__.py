"""The node agent: the kubelet's side of the Kubernetes API, for machines that are not kubelets.

An agent registers a node, runs the pods bound to it on a *host* (namespaces, plain processes, or
a simulation) and serves the kubelet's HTTPS API. It meets the control plane only through
`client`, so it works under our plane and under a real API server alike.

The packages, from the top of the import contract to the bottom, in the order in which a pod
passes through them:

- `agent`: registers the Node, renews its lease, watches for pods, hands each to a worker
- `api`: what an API server asks the node for: logs, exec, attach, port-forward, metrics
- `pods`: one pod: decide what to start and stop, do it, probe it, report its status
- `config`: how one node presents itself
- `net`, `volumes`: what a container gets before it starts: an address, names, files
- `hosts`: where containers run: one interface, three implementations
- `gpu`: simulated GPUs: which container holds which, and what `nvidia-smi` says
- `spec`: what a pod asks for, read and resolved. Pure.

What happens to a pod is decided by pure functions (`pods.lifecycle`, `pods.status`);
everything else carries that out.
"""
