"""The embedded cluster: a Kubernetes that comes with the package.

`plane` is the API server. `controllers`, `scheduler` and `node` work on it through its API.
`workforce` runs those three for each of thousands of planes. `scenarios` says what a cluster is
filled with, and `assembly` puts one together. The toolkit reaches all of it only over the
Kubernetes API, as it reaches any other cluster.
"""
