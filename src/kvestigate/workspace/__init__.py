"""Workspaces: directories on a node's own file system, and processes that run in them.

The files that decide (`spec`, `names`, `sizes`, `marker`, `gpus`, `steps`, `plan`, `running`,
`trees`) are pure; `host`, `survey`, `devices`, `lifecycle`, `runs`, `sync`, `fetch` and `applying`
await. A node's host is reached by way of `kvestigate.node_access`; only a marker file there knows
of a workspace.
"""
