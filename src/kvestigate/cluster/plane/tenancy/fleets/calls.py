"""Requests to the server from inside it: judged, noted and answered like anybody's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from kvestigate.cluster.plane.model.request_info import ROOT, root_path
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, Insider, User
from kvestigate.errors import from_status
from kvestigate.http.message import Headers, Request, Response, Upgrade

MANAGER = "kplane-fleets"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


USER = User("system:kplane:fleets", (MASTERS, AUTHENTICATED))
"""The controller, as which it acts on the root plane and on planes that it makes."""

_ROOT = Insider(ROOT, USER)

Act = Callable[[Insider, Request], Awaitable[Response | Upgrade]]


class Calls:
    """Sends requests to planes, each as an identity of that plane."""

    def __init__(self, act: Act) -> None:
        self._act = act

    async def get(self, path: str) -> dict[str, Any]:
        return await self._call("GET", path)

    async def create(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        return await self._call("POST", path, obj)

    async def merge(self, path: str, change: dict[str, Any]) -> dict[str, Any]:
        return await self._call("PATCH", path, change, media=MERGE)

    async def delete(self, path: str) -> None:
        await self._call("DELETE", path)

    async def apply(self, who: Insider, path: str, obj: dict[str, Any]) -> None:
        path = root_path(who.plane) + path
        await self._call("PATCH", path, obj, APPLY, "force=true", who)

    async def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        media: str = "application/json",
        query: str = "",
        who: Insider = _ROOT,
    ) -> dict[str, Any]:
        """The answer of the server; raises what the server refuses."""
        headers = Headers(
            [
                ("content-type", media),
                ("user-agent", MANAGER),
            ]
        )
        query = "&".join(filter(None, [query, f"fieldManager={MANAGER}"]))
        content = b"" if body is None else msgspec.json.encode(body)
        response = await self._act(who, Request(method, path, query, headers, content))
        assert isinstance(response, Response)  # nothing here is upgraded
        pieces = response.body
        assert isinstance(pieces, bytes | list | tuple)  # nor streamed
        data = pieces if isinstance(pieces, bytes) else b"".join(pieces)
        value: dict[str, Any] = msgspec.json.decode(data)
        if response.status >= 300:
            raise from_status(value, code=response.status)
        return value
