"""One pod on a node, from its first container to its last report.

`lifecycle` decides (pure), `worker` carries the decision out with `preparing`, `stopping`,
`probes` and `hooks`, and `status` says what the API is told (pure).
"""
