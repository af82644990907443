"""Port-forward: connections to a pod's ports, as kubectl tunnels them and as our client does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from kvestigate import errors
from kvestigate.http.message import WebSocket
from kvestigate.http.spdy_session import SpdyStream, accept_streams

TUNNELLED = "SPDY/3.1+portforward.k8s.io"
"""SPDY frames inside a WebSocket: many connections in one."""
CHANNELS = "v4.channel.k8s.io"
"""Two channels a port, data and error: one connection a port."""
PROTOCOLS = (TUNNELLED, CHANNELS)

Dial = Callable[[int], Awaitable[tuple[str, int]]]
"""Where one of the pod's ports is reached."""

_PIECE = 32 * 1024


async def tunnel(socket: WebSocket, dial: Dial) -> None:
    """Serve the streams that kubectl opens: a pair for each connection."""
    await accept_streams(socket, _Tunnel(dial).serve)


class _Tunnel:
    def __init__(self, dial: Dial) -> None:
        self._dial = dial
        self._waiting: dict[str, asyncio.Future[SpdyStream]] = {}

    async def serve(self, stream: SpdyStream) -> None:
        """The error stream comes first and waits for nothing; the data stream does the work."""
        request = stream.headers.get("requestid", "")
        paired = self._waiting.setdefault(request, asyncio.get_running_loop().create_future())
        if stream.headers.get("streamtype") == "error":
            if not paired.done():
                paired.set_result(stream)
            while await stream.read() is not None:
                pass
            return
        complaint = await paired
        del self._waiting[request]
        port = int(stream.headers.get("port", "0"))
        try:
            reader, writer = await asyncio.open_connection(*await self._dial(port))
        except OSError as failure:
            await complaint.write(refusal(port, failure).encode())
            await complaint.finish()
            await stream.finish()
            return
        try:
            await _join(stream, reader, writer)
        finally:
            writer.close()
            await complaint.finish()
            await stream.finish()


async def _join(
    stream: SpdyStream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    async def inward() -> None:
        while (data := await stream.read()) is not None:
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    feeding = asyncio.ensure_future(inward())
    try:
        while data := await reader.read(_PIECE):
            await stream.write(data)
    except OSError:
        pass  # the pod broke the connection: the client sees it end
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


async def channels(socket: WebSocket, dial: Dial, ports: Sequence[int]) -> None:
    """Connect every port and carry its two channels."""
    writers: list[asyncio.StreamWriter | None] = []
    async with asyncio.TaskGroup() as group:
        for index, port in enumerate(ports):
            greeting = port.to_bytes(2, "little")
            await socket.send(bytes((2 * index,)) + greeting)
            await socket.send(bytes((2 * index + 1,)) + greeting)
            try:
                reader, writer = await asyncio.open_connection(*await dial(port))
            except OSError as failure:
                text = refusal(port, failure).encode()
                await socket.send(bytes((2 * index + 1,)) + text)
                writers.append(None)
                continue
            writers.append(writer)
            group.create_task(_outward(socket, reader, 2 * index, alone=len(ports) == 1))
        try:
            await _inward(socket, writers)
        finally:
            for open_writer in writers:
                if open_writer is not None:
                    open_writer.close()


async def _outward(
    socket: WebSocket, reader: asyncio.StreamReader, channel: int, *, alone: bool
) -> None:
    try:
        while data := await reader.read(_PIECE):
            await socket.send(bytes((channel,)) + data)
        if alone:
            await socket.close()
    except (OSError, errors.ConnectionFailed):
        pass  # either end is gone


async def _inward(socket: WebSocket, writers: Sequence[asyncio.StreamWriter | None]) -> None:
    try:
        while (message := await socket.receive()) is not None:
            data = message.encode() if isinstance(message, str) else message
            if not data or data[0] % 2 or data[0] // 2 >= len(writers):
                continue
            writer = writers[data[0] // 2]
            if writer is not None and not writer.is_closing():
                writer.write(data[1:])
                await writer.drain()
    except (OSError, errors.ConnectionFailed):
        pass


def refusal(port: int, failure: OSError) -> str:
    return f"error forwarding port {port} to pod: {failure.strerror or failure}"
