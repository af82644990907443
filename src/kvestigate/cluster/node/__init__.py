"""The node agent: the kubelet's side of the Kubernetes API, for machines that are not kubelets.

It registers nodes, runs the pods bound to them on a *host* (namespaces, plain processes, or a
simulation) and serves the kubelet's HTTPS API. It meets the control plane only through
`client`, so it works under our plane and under a real API server alike. What happens to a pod
is decided by pure functions (`lifecycle`, `status`, `qos`); all else carries that out.
"""
