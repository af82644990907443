"""A pod's port, reached through its kubelet: each connection is a port-forward of its own.

The addresses of pods on embedded nodes are not routed, and only the node knows which of its ports
are the pod's. `Tunnel.open` returns an ordinary socket, so HTTP and TLS need not know of it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

from kvestigate.errors import ConnectionFailed
from kvestigate.http.message import Request, WebSocket
from kvestigate.http.pool import HttpClient

SUBPROTOCOL = "v4.channel.k8s.io"
"""Data in channel 0, errors in channel 1; the first message in each repeats the port."""

_DATA, _ERROR = 0, 1
_PIECE = 32 * 1024
_CONNECT_SECONDS = 10.0


class Tunnel:
    def __init__(self, kubelet: HttpClient, path: str, port: int) -> None:
        self._kubelet = kubelet
        self._request = Request("GET", path, f"port={port}")
        self._bridges: set[asyncio.Task[None]] = set()

    async def open(self) -> socket.socket:
        """A connected socket; ConnectionFailed if the node does not forward."""
        front = await self._kubelet.upgrade(self._request, [SUBPROTOCOL], timeout=_CONNECT_SECONDS)
        near, far = socket.socketpair()
        task = asyncio.create_task(_bridge(front, far), name=f"tunnel {self._request.path}")
        self._bridges.add(task)
        task.add_done_callback(self._bridges.discard)
        return near

    async def aclose(self) -> None:
        for task in self._bridges:
            task.cancel()
        await asyncio.gather(*self._bridges, return_exceptions=True)


async def _bridge(node: WebSocket, far: socket.socket) -> None:
    """Copy bytes both ways until either side ends."""
    reader, writer = await asyncio.open_connection(sock=far)
    try:
        await until_one_ends(_outward(reader, node), _inward(node, writer))
    finally:
        writer.close()
        await node.close()


async def until_one_ends(*directions: Coroutine[Any, Any, None]) -> None:
    """Run both directions of a connection until one ends or fails; then cancel the other."""
    tasks = [asyncio.create_task(direction) for direction in directions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _outward(reader: asyncio.StreamReader, node: WebSocket) -> None:
    while data := await reader.read(_PIECE):
        await node.send(bytes((_DATA,)) + data)


async def _inward(node: WebSocket, writer: asyncio.StreamWriter) -> None:
    greeted: set[int] = set()
    while (message := await node.receive()) is not None:
        data = message.encode() if isinstance(message, str) else message
        channel = data[0] if data else _ERROR
        if channel not in greeted:
            greeted.add(channel)
        elif channel == _DATA:
            writer.write(data[1:])
            await writer.drain()
        else:
            raise ConnectionFailed(data[1:].decode(errors="replace"))
