"""A server that answers by a script, and what tests of the client say about requests."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from kvestigate.aio.clock import WallClock
from kvestigate.client.api import Api
from kvestigate.client.retry import RetryPolicy
from kvestigate.client.transport import Transport
from kvestigate.http.message import Handler, Request, Response, Upgrade

Answer = Response | Upgrade | Callable[[Request], Awaitable[Response | Upgrade]]

OpenTransport = Callable[[Handler], Awaitable[Transport]]


class Script:
    """Answers requests in the order of the script; the last line is repeated."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[Request] = []
        self._answers = deque(answers)

    async def __call__(self, request: Request) -> Response | Upgrade:
        self.requests.append(request)
        answer = self._answers.popleft() if len(self._answers) > 1 else self._answers[0]
        return answer if isinstance(answer, (Response, Upgrade)) else await answer(request)

    def asked(self, number: int = -1) -> dict[str, str]:
        """The query of a request, one value a name."""
        return query_of(self.requests[number])


class InstantClock(WallClock):
    """Sleeps take no time and are written down."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._now = 0.0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._now += seconds
        await asyncio.sleep(0)


def query_of(request: Request) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(request.query).items()}


def answer(body: Any, status: int = 200, **headers: str) -> Response:
    """A JSON answer; `retry_after="1"` is a header."""
    fields = [("content-type", "application/json")]
    fields += [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Response(status, fields, body if isinstance(body, bytes) else json.dumps(body).encode())


def status(code: int, reason: str, message: str = "no", **more: Any) -> Response:
    return answer(failure(code, reason, message, **more), code)


def failure(code: int, reason: str, message: str = "no", **more: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
        **more,
    }


def pod(name: str, version: int = 1, **metadata: Any) -> dict[str, Any]:
    named = {"name": name, "namespace": "shop", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named | metadata}


def event(type: str, object: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": type, "object": object}).encode() + b"\n"


def stream(
    *pieces: bytes,
    then: Callable[[], Awaitable[None]] | None = None,
    ended: asyncio.Event | None = None,
) -> Response:
    """A chunked answer; `then` runs after the last piece and may hold the stream open or fail.

    `ended` is set when the server stops sending, for whatever reason.
    """

    async def body() -> AsyncIterator[bytes]:
        try:
            for piece in pieces:
                yield piece
            if then is not None:
                await then()
        finally:
            if ended is not None:
                ended.set()

    return Response(200, [("content-type", "application/json")], body())


async def forever() -> None:
    await asyncio.Event().wait()


def patient(transport: Transport, clock: InstantClock | None = None, **options: Any) -> Api:
    """An API whose pauses take no time."""
    policy = RetryPolicy(clock=clock or InstantClock())
    return Api(transport, policy=policy, namespace="shop", **options)
