"""SkyPilot tasks and volumes on any Kubernetes; the cluster's API is the only state.

`model`, `parse`, `amounts`, `identity`, `labels`, `script`, `placement`, `compile`, `status`
and `explain` are pure; `manage`, `volumes`, `logs`, `why`, `remote` and `api` await.
"""
