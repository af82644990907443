"""The transport from a plane's workers to its API server, in the server's own process.

No credential is checked: the request is handed to the server with the user it is made for. From
there on it is treated like any other request: RBAC, verbs, admission, metrics, the audit log.
"""

from __future__ import annotations

import asyncio

from kvestigate.client.inprocess import InProcessIncoming, InProcessTransport
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model import request_info
from kvestigate.cluster.plane.model.request_info import Visit, root_path
from kvestigate.cluster.plane.model.user import Insider
from kvestigate.cluster.workforce.identities import Identity
from kvestigate.http.message import Request, Response, Upgrade


class DirectTransport(InProcessTransport):
    """The transport of one identity to one plane."""

    def __init__(self, server: ApiServer, plane: str, identity: Identity) -> None:
        agent = ("user-agent", identity.agent)
        base = root_path(plane)
        super().__init__(self._handle, base_path=base, headers=[agent])
        self._server = server
        self._insider = Insider(plane, identity.user)

    async def send(self, request: Request, *, timeout: float | None) -> InProcessIncoming:
        """No time of the loop passes between request and answer, so there is no deadline."""
        answer = await super().send(request, timeout=None)
        await asyncio.sleep(0)  # let other tasks run between two requests of one task
        return answer

    async def _handle(self, request: Request) -> Response | Upgrade:
        plane, info = request_info.locate(request.method, request.path, request.query)
        return await self._server.handle(request, Visit(plane, info, insider=self._insider))
