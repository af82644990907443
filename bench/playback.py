"""A server that plays a recorded watch as fast as it is read: `python -m bench.playback FILE N`.

Recorded events come round and round, each with the next resource version, N in all. So both
sides of the collect bench get the same stream, and what is measured is theirs alone.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs

from kvestigate.http.message import Request, Response
from kvestigate.http.server import serve

_FIRST = 1_000_000
"""All versions have as many digits, so that an event is cut once and filled in ever after."""
_VERSION = re.compile(rb'("resourceVersion":")\d+(")')
_BATCH = 50
_RESOURCES = b"""{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[
{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment",
"verbs":["list","watch"]}]}"""
_EMPTY = b"""{"kind":"DeploymentList","apiVersion":"apps/v1",
"metadata":{"resourceVersion":"%d"},"items":[]}"""


class Playback:
    def __init__(self, recorded: bytes, count: int) -> None:
        self._events = [_VERSION.split(line, maxsplit=1) for line in recorded.splitlines()]
        self._last = _FIRST + count

    async def handle(self, request: Request) -> Response:
        fields = [("content-type", "application/json")]
        if not request.path.endswith("/deployments"):
            return Response(200, fields, _RESOURCES)
        asked = parse_qs(request.query)
        if asked.get("watch", [""])[0].lower() not in ("1", "true"):
            return Response(200, fields, _EMPTY % _FIRST)
        return Response(200, fields, self._play(int(asked.get("resourceVersion", ["0"])[0])))

    async def _play(self, version: int) -> AsyncIterator[bytes]:
        version = max(version, _FIRST)
        while version < self._last:
            until = min(version + _BATCH, self._last)
            yield b"".join(map(self._event, range(version + 1, until + 1)))
            version = until
        await asyncio.Event().wait()  # a quiet watch, until the reader goes

    def _event(self, version: int) -> bytes:
        before, start, end, after = self._events[version % len(self._events)]
        return b"%s%s%d%s%s\n" % (before, start, version, end, after)


async def main(playback: Playback) -> None:
    async with await serve(playback.handle) as server:
        print(server.address[1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    path, count = sys.argv[1:]
    asyncio.run(main(Playback(Path(path).read_bytes(), int(count))))
