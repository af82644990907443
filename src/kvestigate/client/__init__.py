"""The one way we talk to a Kubernetes API server, with kubectl as the reference.

Owns kubeconfig, authentication, transport, list, watch, informers and streams.
"""
