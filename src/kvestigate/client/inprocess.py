"""A transport without sockets: the server's handler is called in this process.

What a socket would do to both sides happens here too: a client that leaves closes the
server's stream, a slow reader holds back the writer, and a closed end ends the other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from kvestigate import errors
from kvestigate.aio.turns import Turns
from kvestigate.client.call import failure
from kvestigate.http.message import Handler, Headers, Peer, Request, Response, Upgrade, WebSocket

# Messages a side may send ahead of its reader, as a socket's buffers would hold.
_WINDOW = 16


class InProcessTransport:
    """Requests to `handler`, sent below `base_path` with `headers` on each."""

    def __init__(
        self,
        handler: Handler,
        *,
        base_path: str = "",
        headers: Sequence[tuple[str, str]] = (),
        turns: Turns | None = None,
    ) -> None:
        """`turns` are shared by clients who would crowd out those that come through sockets."""
        self._handler = handler
        self._base_path = base_path.rstrip("/")
        self._headers = tuple(headers)
        self._turns = turns
        self._sessions: set[asyncio.Task[None]] = set()
        self._closed = False

    async def send(self, request: Request, *, timeout: float | None) -> InProcessIncoming:
        answer = await self._answer(request, timeout)
        if isinstance(answer, Upgrade):
            return InProcessIncoming(Response(400, body=b"this path is for WebSockets"))
        return InProcessIncoming(answer)

    async def upgrade(
        self, request: Request, subprotocols: Sequence[str], *, timeout: float | None
    ) -> WebSocket:
        headers = Headers(request.headers)
        headers.add("connection", "Upgrade")
        headers.add("upgrade", "websocket")
        headers.add("sec-websocket-version", "13")
        headers.add("sec-websocket-key", "a3Zlc3RpZ2F0ZS1sb2NhbA==")
        if subprotocols:
            headers.add("sec-websocket-protocol", ", ".join(subprotocols))
        request = Request(request.method, request.path, request.query, headers, request.body)
        answer = await self._answer(request, timeout)
        if isinstance(answer, Response):
            incoming = InProcessIncoming(answer)
            raise failure(request, incoming.status, await incoming.read())
        client, server = _pair(answer.subprotocol)
        session = asyncio.ensure_future(self._serve(answer, server))
        self._sessions.add(session)
        session.add_done_callback(self._sessions.discard)
        return client

    async def aclose(self) -> None:
        self._closed = True
        sessions = list(self._sessions)
        for session in sessions:
            session.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)

    async def _answer(self, request: Request, timeout: float | None) -> Response | Upgrade:
        if self._closed:
            raise errors.ConnectionFailed("this client is closed")
        if self._turns is not None:
            await self._turns.take()
        local = Request(
            method=request.method,
            path=self._base_path + request.path,
            query=request.query,
            headers=Headers([*request.headers, *self._headers]),
            body=request.body,
            peer=Peer(),
        )
        if timeout is None:
            return await self._handler(local)
        try:
            async with asyncio.timeout(timeout):
                return await self._handler(local)
        except TimeoutError as late:
            raise errors.DeadlineExceeded(
                f"no answer to {request.method} {request.path} within {timeout:g} seconds"
            ) from late

    async def _serve(self, upgrade: Upgrade, server: _Socket) -> None:
        try:
            await upgrade.run(server)
        finally:
            await server.close()


class InProcessIncoming:
    """A handler's `Response`, seen from the client."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = Headers(response.headers)
        self._body = response.body
        self._pieces = self._iterate()

    async def read(self, limit: int | None = None) -> bytes:
        if isinstance(self._body, bytes) and limit is None:
            return self._body
        body = bytearray()
        try:
            async for piece in self._pieces:
                body += piece
                if limit is not None and len(body) > limit:
                    raise errors.ConnectionFailed(f"the answer is longer than {limit} bytes")
        finally:
            await self.aclose()
        return bytes(body)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._pieces.aclose()
        close = getattr(self._body, "aclose", None)
        if close is not None:
            await close()

    async def _iterate(self) -> AsyncGenerator[bytes, None]:
        body = self._body
        if isinstance(body, bytes):
            yield body
        elif isinstance(body, AsyncIterator):
            async for piece in body:
                yield piece
        else:
            for piece in body:
                yield piece


def _pair(subprotocol: str | None) -> tuple[_Socket, _Socket]:
    """The two ends of one connection."""
    here = _Socket(subprotocol)
    there = _Socket(subprotocol)
    here.peer, there.peer = there, here
    return here, there


class _Socket:
    """One end: what the peer sends waits in its inbox, and is still read after a close."""

    def __init__(self, subprotocol: str | None) -> None:
        self.subprotocol = subprotocol
        self.peer = self
        self._inbox: deque[bytes | str] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._closed = False

    async def send(self, message: bytes | str) -> None:
        peer = self.peer
        while len(peer._inbox) >= _WINDOW and not self._closed:
            peer._room.clear()
            await peer._room.wait()
        if self._closed:
            raise errors.ConnectionFailed("the WebSocket is closed")
        peer._inbox.append(message)
        peer._news.set()

    async def receive(self) -> bytes | str | None:
        while not self._inbox:
            if self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        self._room.set()
        return self._inbox.popleft()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        for end in (self, self.peer):
            end._closed = True
            end._news.set()
            end._room.set()
