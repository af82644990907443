"""A response's body on its way from the parser to whoever reads it."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from kvestigate import errors
from kvestigate.http.message import Headers

HIGH_WATER = 256 * 1024
"""Unread bytes beyond which the socket is no longer read."""
_INFLATE_STEP = 64 * 1024


class Source(Protocol):
    """The connection a body comes from."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abort(self) -> None:
        """Close the socket: the rest of the body is not wanted."""


class ResponseBody:
    """A response whose head has come (`message.Incoming`)."""

    __slots__ = (
        "_buffered",
        "_chunks",
        "_complete",
        "_failure",
        "_inflater",
        "_paused",
        "_source",
        "_waiter",
        "headers",
        "read_timeout",
        "status",
        "what",
    )

    def __init__(self, source: Source, status: int, headers: Headers, what: str) -> None:
        self.status = status
        self.headers = headers
        self.what = what
        """`GET /path of host:port`, for messages."""
        self.read_timeout: float | None = None
        """How long the next piece may take; None waits forever, as watches must."""
        self._source = source
        self._chunks: list[bytes] = []
        self._buffered = 0
        self._paused = False
        self._complete = False
        self._failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        gzipped = headers.get("content-encoding").lower() in ("gzip", "x-gzip")
        self._inflater = Inflater() if gzipped else None

    # What the connection calls.

    def feed(self, data: bytes) -> None:
        self._chunks.append(data)
        self._buffered += len(data)
        if self._buffered > HIGH_WATER and not self._paused:
            self._paused = True
            self._source.pause()
        self._wake()

    def finish(self) -> None:
        self._complete = True
        self._wake()

    def fail(self, failure: Exception) -> None:
        if not self._complete:
            self._failure = failure
            self._wake()

    # What readers call.

    async def read(self, limit: int | None = None) -> bytes:
        if self._complete and self._inflater is None and limit is None:
            body = b"".join(self._chunks)
            self._chunks.clear()
            return body
        pieces = []
        size = 0
        async for piece in self:
            size += len(piece)
            if limit is not None and size > limit:
                await self.aclose()
                raise errors.ConnectionFailed(
                    f"the answer to {self.what} is longer than {limit} bytes"
                )
            pieces.append(piece)
        return b"".join(pieces)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            if self._chunks:
                waiting = self._take()
                if self._inflater is None:
                    yield waiting
                else:
                    for piece in self._inflate(waiting):
                        yield piece
                        await asyncio.sleep(0)  # a little gzip may be very much: let others run
                continue
            if self._failure is not None:
                raise self._failure
            if self._complete:
                break
            await self._wait()
        if self._inflater is not None and self._inflater.unfinished:
            raise errors.ConnectionFailed(f"the gzip stream of {self.what} ends too early")

    async def aclose(self) -> None:
        self._chunks.clear()
        if not self._complete and self._failure is None:
            self._failure = errors.ConnectionFailed(f"the answer to {self.what} was given up")
            self._source.abort()

    def _take(self) -> bytes:
        """All that waits, as one: servers write chunks far smaller than what a read brings."""
        waiting = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._paused:
            self._paused = False
            self._source.resume()
        return waiting

    def _inflate(self, chunk: bytes) -> Iterator[bytes]:
        assert self._inflater is not None
        try:
            yield from self._inflater.feed(chunk)
        except zlib.error as failure:
            self._source.abort()
            raise errors.ConnectionFailed(
                f"the answer to {self.what} is not valid gzip: {failure}"
            ) from failure

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            if self.read_timeout is None:
                await self._waiter
            else:
                async with asyncio.timeout(self.read_timeout):
                    await self._waiter
        except TimeoutError:
            await self.aclose()
            raise errors.DeadlineExceeded(
                f"nothing more of the answer to {self.what} within {self.read_timeout:g} s"
            ) from None
        except asyncio.CancelledError:
            await self.aclose()
            raise
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Inflater:
    """Streaming gunzip in bounded steps, across concatenated members."""

    __slots__ = ("_member", "_started")

    def __init__(self) -> None:
        self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._started = False

    @property
    def unfinished(self) -> bool:
        """Whether input ended inside a member; no input at all is an empty body."""
        return self._started and not self._member.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            self._started = True
            piece = self._member.decompress(data, _INFLATE_STEP)
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if piece:
                yield piece
