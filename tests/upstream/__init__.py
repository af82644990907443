"""Unmodified upstream Kubernetes on loopback, for tests and benchmarks.

`UpstreamCluster` starts the binaries that `make kubernetes` builds. Plain subprocesses and a
plain HTTPS client: nothing here may use `kvestigate.client`, because it is what judges it.
"""
