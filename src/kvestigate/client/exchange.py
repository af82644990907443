"""Requests and their answers: retries, deadlines, and failures as exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from kvestigate import errors
from kvestigate.client.call import Call, failure
from kvestigate.client.retry import RetryLater, RetryPolicy, retry_after
from kvestigate.client.transport import Transport
from kvestigate.http.message import Incoming, Request

TIMEOUT = 60.0


class Exchange:
    """A transport with retries, deadlines and failures as exceptions."""

    def __init__(
        self, transport: Transport, *, policy: RetryPolicy | None = None, timeout: float = TIMEOUT
    ) -> None:
        self.transport = transport
        self.policy = policy or RetryPolicy()
        self.timeout = timeout
        """Seconds for a whole answer, or of silence within one that streams."""

    async def body(
        self, call: Call | Request, request: Request | None = None, *, timeout: float | None = None
    ) -> bytes:
        """The body of a successful answer."""
        http_request = request or _request(call)
        deadline = timeout or self.timeout

        async def attempt() -> bytes:
            incoming = await self.once(call, http_request, timeout=deadline)
            try:
                return await incoming.read()
            finally:
                await incoming.aclose()

        return await self.policy.run(http_request, attempt, deadline=deadline)

    @asynccontextmanager
    async def stream(self, call: Call, request: Request | None = None) -> AsyncIterator[Incoming]:
        """A successful answer whose body is read inside the block; leaving it closes the body."""
        http_request = request or _request(call)
        incoming = await self.policy.run(
            http_request, lambda: self.once(call, http_request), deadline=self.timeout
        )
        try:
            yield incoming
        finally:
            await incoming.aclose()

    async def once(
        self, call: Call | Request, request: Request, *, timeout: float | None = None
    ) -> Incoming:
        """One attempt: the head of a successful answer, or an exception."""
        incoming = await self.transport.send(request, timeout=timeout or self.timeout)
        if 200 <= incoming.status < 300:
            return incoming
        try:
            error = failure(call, incoming.status, await incoming.read())
        finally:
            await incoming.aclose()
        pause = retry_after(incoming.status, incoming.headers.get("retry-after"))
        if pause is not None:
            raise RetryLater(pause, error)
        raise error


async def pieces(
    incoming: Incoming, *, silence: float, http_request: Request
) -> AsyncGenerator[bytes, None]:
    """The body as it comes, as long as no pause in it is longer than `silence` seconds."""
    body = aiter(incoming)
    while True:
        try:
            async with asyncio.timeout(silence):
                piece = await anext(body, None)
        except TimeoutError as late:
            raise errors.DeadlineExceeded(
                f"the answer to {http_request.method} {http_request.path} stopped for {silence:g} s"
            ) from late
        if piece is None:
            return
        yield piece


def _request(call: Call | Request) -> Request:
    return call.request() if isinstance(call, Call) else call
