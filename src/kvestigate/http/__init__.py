"""HTTP/1.1, WebSocket and SPDY on asyncio, both sides: what client, plane and node speak.

Knows no Kubernetes. Parsing is httptools (llhttp) and the sans-I/O protocols of websockets; this
package owns sockets, limits, deadlines and flow control, nothing else.

Start with `message`: requests, responses, and the `Handler` that turns the one into the other.

    client                                   server
    pool        connections, retries         server      listens, stops
    connection  one exchange at a time       listener    accepts TLS connections
    body        a response as it arrives     service     one connection: requests and answers
    dial        TCP, TLS, proxies            intake      bytes in, requests out
    socks       SOCKS5 proxies               answer      heads, chunks, gzip
                                             limits      what a server puts up with

    both: websocket and handshake; spdy and spdy_session; tls, certificates, sockets

The contract `http` in .importlinter keeps this order, and the two sides blind to each other.
"""
