"""Options of the TCP sockets on both sides."""

from __future__ import annotations

import socket

# A peer whose machine vanished is noticed within a minute, also on a watch that is silent.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


def tune(sock: socket.socket) -> None:
    """Send small writes at once, and probe silent peers. Accepted sockets inherit it on Linux."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
