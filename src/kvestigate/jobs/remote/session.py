"""A process in a task, reached through the launcher's server."""

from __future__ import annotations

from kvestigate.client.streams import Session
from kvestigate.http.message import Request, WebSocket
from kvestigate.http.pool import HttpClient, UpgradeRefused
from kvestigate.jobs.server.failures import failure

_TIMEOUT = 60.0


class RemoteSession(Session):
    def __init__(self, client: HttpClient, opening: Request) -> None:
        self._client = client
        self._opening = opening

    async def _connect(self, *subprotocols: str) -> WebSocket:
        try:
            return await self._client.upgrade(self._opening, subprotocols, timeout=_TIMEOUT)
        except UpgradeRefused as refused:
            raise failure(refused.status, refused.body) from None
