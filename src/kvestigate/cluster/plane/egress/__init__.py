"""Requests that a node or a pod answers: found in the state, reached over HTTP, passed through.

locate      which kubelet, container or address is meant (pure)
reach       connections to kubelets and pods
relay       answers and WebSockets, handed on as they come
log, streams, proxy    the subresources made of these
"""
