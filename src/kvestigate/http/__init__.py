"""HTTP/1.1 and WebSocket on asyncio, both sides: what the client, the plane and the node speak.

Knows no Kubernetes. Parsing is httptools (llhttp) and websockets' sans-I/O protocols; this
package owns sockets, limits, deadlines and flow control, nothing else.
"""
