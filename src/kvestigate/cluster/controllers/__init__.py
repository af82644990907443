"""The controllers of an embedded cluster: each brings one kind of object to its wanted state.

They know the cluster only through `kvestigate.client`, so they run beside the API server, in
another process, or against a Kubernetes that somebody else made. Each file has a pure `decide`
(values and `now` in, what is to be done out) and a thin `reconcile` that does it. They never
read the store, and never wait for anything but the API.
"""
