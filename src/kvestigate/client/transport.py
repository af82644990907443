"""What carries requests to an API server: a contract with two implementations.

`http.HttpTransport` speaks HTTP to a server elsewhere, `inprocess.InProcessTransport` calls a
handler in this process. Nothing above this seam knows which one it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kvestigate.http.message import Incoming, Request, WebSocket


class Transport(Protocol):
    """Carries requests; fails with `ConnectionFailed` or `DeadlineExceeded`."""

    async def send(self, request: Request, *, timeout: float | None) -> Incoming:
        """The answer to `request`; `timeout` is for its head."""

    async def upgrade(
        self, request: Request, subprotocols: Sequence[str], *, timeout: float | None
    ) -> WebSocket:
        """A WebSocket; an `ApiError` when the server refuses it."""

    async def aclose(self) -> None: ...
