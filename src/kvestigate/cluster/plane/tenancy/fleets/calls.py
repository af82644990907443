"""Requests to the server from inside it: judged, noted and answered like anybody's."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cluster.plane.model.request_info import root_path
from kvestigate.errors import from_status
from kvestigate.http.message import Handler, Headers, Request, Response

MANAGER = "kplane-fleets"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class Calls:
    """Sends requests to planes as the user of a token."""

    def __init__(self, handler: Handler, token: str) -> None:
        self._handler = handler
        self._authorization = f"Bearer {token}"

    async def get(self, path: str) -> dict[str, Any]:
        return await self._call("GET", path)

    async def create(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        return await self._call("POST", path, obj)

    async def merge(self, path: str, change: dict[str, Any]) -> dict[str, Any]:
        return await self._call("PATCH", path, change, media=MERGE)

    async def delete(self, path: str) -> None:
        await self._call("DELETE", path)

    async def apply(self, plane: str, path: str, obj: dict[str, Any]) -> None:
        await self._call("PATCH", root_path(plane) + path, obj, APPLY, "force=true")

    async def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        media: str = "application/json",
        query: str = "",
    ) -> dict[str, Any]:
        """The answer of the server; raises what the server refuses."""
        headers = Headers(
            [
                ("authorization", self._authorization),
                ("content-type", media),
                ("user-agent", MANAGER),
            ]
        )
        query = "&".join(filter(None, [query, f"fieldManager={MANAGER}"]))
        content = b"" if body is None else msgspec.json.encode(body)
        response = await self._handler(Request(method, path, query, headers, content))
        assert isinstance(response, Response)  # nothing here is upgraded
        pieces = response.body
        assert isinstance(pieces, bytes | list | tuple)  # nor streamed
        data = pieces if isinstance(pieces, bytes) else b"".join(pieces)
        value: dict[str, Any] = msgspec.json.decode(data)
        if response.status >= 300:
            raise from_status(value, code=response.status)
        return value
