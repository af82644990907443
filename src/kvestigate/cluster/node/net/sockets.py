"""Doing a container's calls on its own sockets, with other addresses. Linux."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import select
import socket

from kvestigate.cluster.node.net.routing import Route
from kvestigate.cluster.node.net.translation import Address

_BIND_ADDRESS_NO_PORT = 24
"""A source address without a port yet, so that sources do not run out of ports."""


def bind(sock: socket.socket, place: Address) -> int:
    """0, or the negative of an errno."""
    try:
        if sock.family == socket.AF_INET6 and _only_six(sock):
            # Pods have no IPv6 address: the socket listens, but no connection can reach it.
            sock.bind(("::1", 0))
        else:
            sock.bind(_named(sock, place))
    except OSError as failure:
        return -(failure.errno or errno.EINVAL)
    return 0


async def connect(sock: socket.socket, route: Route, source: str) -> int:
    """Try each place; 0, or the negative of an errno.

    The socket is made non-blocking meanwhile, since this process has others to serve.
    """
    flags = fcntl.fcntl(sock, fcntl.F_GETFL)
    blocking = not flags & os.O_NONBLOCK
    if route.from_pod:
        leave_from(sock, source)
    if blocking:
        fcntl.fcntl(sock, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        return await _try_each(sock, route.places, blocking=blocking)
    finally:
        if blocking:
            fcntl.fcntl(sock, fcntl.F_SETFL, flags)


async def _try_each(sock: socket.socket, places: tuple[Address, ...], *, blocking: bool) -> int:
    result = errno.ECONNREFUSED
    for number, place in enumerate(places, start=1):
        result = sock.connect_ex(_named(sock, place))
        if result == errno.EINPROGRESS and (blocking or number < len(places)):
            if not blocking and not _answered(sock):
                break  # its owner waits for it
            await _writable(sock)
            # Asked once more, the socket tells how it went and can be used again.
            result = sock.connect_ex(_named(sock, place))
        if result != errno.ECONNREFUSED:
            break
    return -result


def send(sock: socket.socket, data: bytes, flags: int, place: Address, source: str) -> int:
    """The number of bytes sent, or the negative of an errno."""
    leave_from(sock, source)
    try:
        return sock.sendto(data, flags | socket.MSG_DONTWAIT, _named(sock, place))
    except OSError as failure:
        return -(failure.errno or errno.EINVAL)


def leave_from(sock: socket.socket, source: str) -> None:
    """Let the other side see where it comes from, unless the socket has a source already."""
    if not source or sock.getsockname()[1]:
        return
    try:
        if sock.type == socket.SOCK_STREAM:
            sock.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
        sock.bind(_named(sock, Address(source, 0)))
    except OSError:
        pass  # then it comes from 127.0.0.1


def protocol(sock: socket.socket) -> str:
    return {socket.SOCK_STREAM: "TCP", socket.SOCK_DGRAM: "UDP"}.get(
        socket.SocketKind(sock.type), ""
    )


def _named(sock: socket.socket, place: Address) -> tuple[str, int]:
    if sock.family == socket.AF_INET6 and ":" not in place.ip:
        return (f"::ffff:{place.ip}", place.port)
    return (place.ip, place.port)


def _only_six(sock: socket.socket) -> bool:
    return bool(sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))


def _answered(sock: socket.socket) -> bool:
    """Whether the connection was accepted or refused: on one machine that is known at once."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    return bool(poll.poll(0))


async def _writable(sock: socket.socket) -> None:
    if _answered(sock):
        return
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(sock.fileno(), _settle, ready)
    try:
        await ready
    finally:
        loop.remove_writer(sock.fileno())


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
