"""SPDY streams over anything that carries bytes: the accepting side.

    async def serve(stream: SpdyStream) -> None: ...
    await accept_streams(websocket, serve)

The channel may be a WebSocket whose messages are pieces of the byte stream, as kubectl's
port-forward sends them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from kvestigate import errors
from kvestigate.http import spdy

MAX_BUFFERED = 1024 * 1024
"""Bytes that may wait for the reader of one stream. SPDY as Kubernetes speaks it has no flow
control, so a slow reader then holds up all streams of the connection rather than memory."""

_LONGEST_DATA = 32 * 1024


class Channel(Protocol):
    """What carries the bytes; a `message.WebSocket` is one."""

    async def send(self, message: bytes | str) -> None: ...

    async def receive(self) -> bytes | str | None:
        """The next piece; None at the end."""


class SpdyStream:
    """One stream that the peer has opened; reading and writing end on their own."""

    def __init__(self, session: _Session, id_: int, headers: Mapping[str, str]) -> None:
        self.id = id_
        self.headers = headers
        """What it was opened with, names in lower case."""
        self._session = session
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._changed = asyncio.Event()
        self.peer_finished = False
        self.finished = False

    async def read(self) -> bytes | None:
        """The next piece of data; None when the peer will send no more."""
        while not self._pieces:
            if self.peer_finished:
                return None
            await self._change()
        piece = self._pieces.popleft()
        self._buffered -= len(piece)
        self._changed.set()
        return piece

    async def write(self, data: bytes) -> None:
        """Send data; ConnectionFailed once the stream is finished or reset."""
        for start in range(0, len(data), _LONGEST_DATA):
            if self.finished:
                raise errors.ConnectionFailed(f"the SPDY stream {self.id} is finished")
            await self._session.send(spdy.Data(self.id, data[start : start + _LONGEST_DATA]))

    async def finish(self) -> None:
        """Say that we write no more."""
        if not self.finished:
            self.finished = True
            await self._session.send(spdy.Data(self.id, b"", fin=True))
            self._session.forget_if_done(self)

    async def reset(self) -> None:
        """End it at once, in both directions."""
        if not (self.finished and self.peer_finished):
            self.end()
            await self._session.send(spdy.Reset(self.id))
            self._session.forget_if_done(self)

    async def deliver(self, data: bytes, fin: bool) -> None:
        """What the peer sent; waits while too much is unread."""
        while self._buffered > MAX_BUFFERED and not self.finished:
            await self._change()
        if data and not self.peer_finished:
            self._pieces.append(data)
            self._buffered += len(data)
        self.peer_finished = self.peer_finished or fin
        self._changed.set()

    def end(self) -> None:
        """The stream or its connection is gone."""
        self.finished = self.peer_finished = True
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


Serve = Callable[[SpdyStream], Awaitable[None]]


async def accept_streams(channel: Channel, serve: Serve) -> None:
    """Run `serve` for each stream that the peer opens, until the peer has gone.

    Every stream is accepted. One that `serve` leaves unfinished is finished for it; a
    failure of one resets that one only.
    """
    await _Session(channel).run(serve)


class _Session:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._framer = spdy.Framer()
        self._sending = asyncio.Lock()
        self._streams: dict[int, SpdyStream] = {}

    async def run(self, serve: Serve) -> None:
        tasks: set[asyncio.Task[None]] = set()
        try:
            while (message := await self._channel.receive()) is not None:
                data = message.encode() if isinstance(message, str) else message
                for frame in self._framer.receive(data):
                    if isinstance(frame, spdy.GoAway):
                        return
                    if isinstance(frame, spdy.SynStream):
                        stream = await self._open(frame)
                        task = asyncio.create_task(self._serve(stream, serve))
                        tasks.add(task)
                        task.add_done_callback(tasks.discard)
                    else:
                        await self._take(frame)
        finally:
            for stream in list(self._streams.values()):
                stream.end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def send(self, frame: spdy.Frame) -> None:
        # Headers are compressed in the order in which they are sent.
        async with self._sending:
            await self._channel.send(self._framer.encode(frame))

    def forget_if_done(self, stream: SpdyStream) -> None:
        if stream.finished and stream.peer_finished:
            self._streams.pop(stream.id, None)

    async def _open(self, frame: spdy.SynStream) -> SpdyStream:
        stream = SpdyStream(self, frame.stream, frame.headers)
        stream.peer_finished = frame.fin
        self._streams[frame.stream] = stream
        await self.send(spdy.SynReply(frame.stream))
        return stream

    async def _take(self, frame: spdy.Frame) -> None:
        if isinstance(frame, spdy.Ping):
            await self.send(frame)
        elif isinstance(frame, spdy.Data):
            stream = self._streams.get(frame.stream)
            if stream is not None:  # else it has ended and this crossed our last frame
                await stream.deliver(frame.data, frame.fin)
                self.forget_if_done(stream)
        elif isinstance(frame, spdy.Reset):
            stream = self._streams.pop(frame.stream, None)
            if stream is not None:
                stream.end()

    async def _serve(self, stream: SpdyStream, serve: Serve) -> None:
        try:
            await serve(stream)
            await stream.finish()
        except errors.KvestigateError:
            try:
                await stream.reset()
            except errors.KvestigateError:
                return  # the connection is gone, and the stream with it
