"""Outgoing connections: to kubelets, pods, Services and webhooks.

locate      the kubelet, container or address of a request (pure)
endpoints   one of the ready endpoints of a Service (pure)
reach       connections, kept open
tunnel      a connection to a pod's port through its kubelet
relay       responses and WebSockets, passed on to the client as they arrive

The subresources log, exec, attach, portforward and proxy are made of these.
"""
