"""The embedded API server: one process that serves many Kubernetes control planes ("planes").

It answers requests from its own store and calls nobody: no client, no node, no controller is
imported here. Whatever else the embedded cluster is made of reaches a plane over the API.
"""
