"""One request of our HTTP server, answered by an ASGI application.

The application runs in a task of its own for as long as the client listens. A short answer comes
back whole; an answer in several parts becomes a stream. A client that leaves cancels the task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from kvestigate.http.message import Request, Response

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_AHEAD = 4
"""Parts of an answer that wait for a slow client; then the application waits."""


async def answered(
    application: Application, request: Request, body: bytes, **extra: Any
) -> Response:
    """The application's answer to the request; `extra` are more entries of its scope."""
    exchange = _Exchange(body)
    task = asyncio.ensure_future(
        application({**_scope(request), **extra}, exchange.receive, exchange.send)
    )
    task.add_done_callback(exchange.end)
    try:
        head = await exchange.part(task)
        first = await exchange.part(task)
    except BaseException:
        await _stopped(task)
        raise
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head["headers"]]
    piece = first.get("body", b"")
    if not first.get("more_body"):
        await _stopped(task)
        return Response(head["status"], fields, piece)
    return Response(head["status"], fields, _Stream(exchange, task, piece))


def _scope(request: Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode("latin-1"),
        "query_string": request.query.encode("latin-1"),
        "root_path": "",
        "headers": [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers
        ],
        "client": None,
        "server": None,
    }


class _Exchange:
    """What the application receives, and the parts that it has sent."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._parts: asyncio.Queue[Message | None] = asyncio.Queue(_AHEAD)
        self._gone = asyncio.Event()

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self._parts.put(message)

    def end(self, task: asyncio.Future[None]) -> None:
        self._gone.set()
        if not self._parts.full():
            self._parts.put_nowait(None)

    async def part(self, task: asyncio.Future[None]) -> Message:
        """The next part; RuntimeError if the application ends without having sent one."""
        part = None
        if not (task.done() and self._parts.empty()):
            part = await self._parts.get()
        if part is None:
            failure = None if task.cancelled() else task.exception()
            raise RuntimeError("the application gave no answer") from failure
        return part


class _Stream:
    """The parts of an answer as they come."""

    def __init__(self, exchange: _Exchange, task: asyncio.Future[None], first: bytes) -> None:
        self._exchange = exchange
        self._task = task
        self._next: bytes | None = first
        """The part that has come and is to be sent; None: not yet, or there is no more."""
        self._more = True

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> bytes:
        if self._next is not None:
            piece, self._next = self._next, None
            return piece
        if not self._more:
            raise StopAsyncIteration
        part = await self._exchange.part(self._task)
        self._more = bool(part.get("more_body"))
        return bytes(part.get("body", b""))

    async def aclose(self) -> None:
        await _stopped(self._task)


async def _stopped(task: asyncio.Future[None]) -> None:
    """Cancel the application, whose answer is complete or no longer wanted."""
    task.cancel()
    await asyncio.wait({task})
