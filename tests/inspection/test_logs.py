"""Logs of several pods, of which one cannot be read."""

from __future__ import annotations

import json

import pytest

from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.errors import BadRequest
from kvestigate.http.message import Request, Response
from kvestigate.inspection.logs import LogsOptions, LogSource, Stream

WAITING = {"kind": "Status", "reason": "BadRequest", "code": 400, "message": "waiting to start"}


async def handle(request: Request) -> Response:
    if "/pods/new/" in request.path:
        return Response(400, [("content-type", "application/json")], json.dumps(WAITING).encode())
    return Response(200, [("content-type", "text/plain")], b"hello\n")


async def test_a_pod_that_cannot_be_heard_does_not_silence_the_others() -> None:
    sources = [LogSource("new", "main"), LogSource("old", "main")]
    stream = Stream(Api(InProcessTransport(handle)), sources, LogsOptions("deployment/web"))
    heard: list[tuple[str, str]] = []
    with pytest.raises(BadRequest, match="waiting to start"):
        await hear(stream, heard)
    assert heard == [("old", "hello")]


async def hear(stream: Stream, heard: list[tuple[str, str]]) -> None:
    async for line in stream:
        heard.append((line.source.pod, line.text))
