"""When to ask again: the rules of client-go.

- 429, or any 5xx, that carries `Retry-After`: the server did not process the request, so any
  method may be repeated after that pause.
- A connection that broke under a GET or HEAD: repeated with growing, jittered pauses.
- Anything else is the caller's to judge.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from kvestigate import errors
from kvestigate.aio.backoff import Backoff
from kvestigate.aio.clock import WALL, Clock
from kvestigate.http.message import Request

T = TypeVar("T")

_SAFE = frozenset({"GET", "HEAD"})


class RetryLater(Exception):
    """The server refused for now and said when to come back."""

    def __init__(self, seconds: float, error: errors.ApiError) -> None:
        super().__init__(seconds, error)
        self.seconds = seconds
        self.error = error


def _pause() -> Backoff:
    return Backoff(initial=0.1, cap=5.0)


class RetryPolicy(Struct, frozen=True):
    """How often and how long a client retries."""

    attempts: int = 10
    """Tries that follow a `Retry-After`, as client-go's."""
    reconnects: int = 3
    """Tries that follow a broken connection: a person waits for most of them."""
    pause: Callable[[], Backoff] = _pause
    clock: Clock = WALL

    async def run(
        self, request: Request, attempt: Callable[[], Awaitable[T]], *, deadline: float | None
    ) -> T:
        """Await `attempt` until it succeeds, fails for good, or `deadline` seconds have passed."""
        try:
            async with asyncio.timeout(deadline):
                return await self._attempts(request, attempt)
        except TimeoutError as late:
            raise errors.DeadlineExceeded(
                f"no answer to {request.method} {request.path} within {deadline:g} seconds"
            ) from late

    async def _attempts(self, request: Request, attempt: Callable[[], Awaitable[T]]) -> T:
        backoff = self.pause()
        refused = broken = 0
        while True:
            try:
                return await attempt()
            except RetryLater as later:
                refused += 1
                if refused > self.attempts:
                    raise later.error from None
                pause = later.seconds
            except errors.ConnectionFailed as lost:
                broken += 1
                if broken > self.reconnects or request.method not in _SAFE or _lasting(lost):
                    raise
                pause = backoff.next()
            await self.clock.sleep(pause)


def _lasting(error: errors.ConnectionFailed) -> bool:
    """Whether the next attempt would fail alike: connection refused, unknown host, TLS."""
    return isinstance(error.__cause__, (ConnectionRefusedError, socket.gaierror, ssl.SSLError))


def retry_after(code: int, header: str) -> float | None:
    """The pause the server asks for, where the answer allows to repeat the request."""
    if code != 429 and code < 500:
        return None
    return float(header) if header.strip().isdigit() else None
