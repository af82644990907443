"""A small admission webhook on loopback, and what it may answer."""

from __future__ import annotations

import asyncio
import base64
import datetime
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.message import Request, Response
from kvestigate.http.server import serve
from kvestigate.http.tls import server_context

Object = dict[str, Any]
SERVICE_NAME = "front.default.svc"
"""The other name in its certificate: that of a Service."""
NAME = "hook.example.com"


@dataclass
class Judge:
    """Answers reviews as it was told to, and remembers them."""

    response: Object = field(default_factory=lambda: {"allowed": True})
    review: Object = field(default_factory=dict)
    """Put over the whole answer."""
    raw: tuple[int, bytes] | None = None
    """The answer, if it is no review."""
    late: asyncio.Event | None = None
    """What it waits for before it answers."""
    asked: list[Object] = field(default_factory=list)
    arrived: Callable[[], None] | None = None
    """Called with every review that came."""
    respond: Callable[[Object], Object] | None = None
    port: int = 0
    ca: str = ""

    async def handle(self, request: Request) -> Response:
        asked = msgspec.json.decode(request.body)
        self.asked.append({**asked["request"], "path": request.path, "query": request.query})
        if self.arrived is not None:
            self.arrived()
        if self.late is not None:
            await self.late.wait()
        if self.raw is not None:
            media = "application/json" if self.raw[1].startswith(b"{") else "text/plain"
            return Response(self.raw[0], [("content-type", media)], self.raw[1])
        told = self.response if self.respond is None else self.respond(asked["request"])
        whole: Object = {
            "apiVersion": asked["apiVersion"],
            "kind": "AdmissionReview",
            "response": {"uid": asked["request"]["uid"], **told},
            **self.review,
        }
        return Response(200, [("content-type", "application/json")], msgspec.json.encode(whole))

    def hook(self, **fields: Any) -> Object:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"]}
        return {
            "name": NAME,
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/ask", "caBundle": self.ca},
            "rules": [{**rule, "resources": ["configmaps"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }


def patch(*steps: Object) -> Object:
    """The response that changes the object."""
    encoded = base64.b64encode(msgspec.json.encode(steps)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


@cache
def _authority() -> CertificateAuthority:
    return CertificateAuthority.create("hooks", now=_now())


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@asynccontextmanager
async def judging(names: Sequence[str] = ("127.0.0.1", SERVICE_NAME)) -> AsyncIterator[Judge]:
    authority = _authority()
    pair = authority.issue_server("hook", list(names), now=_now())
    found = Judge()
    tls = server_context(certificate=pair.certificate, key=pair.key)
    async with await serve(found.handle, tls=tls) as server:
        found.port = server.address[1]
        found.ca = base64.b64encode(authority.pair.certificate).decode()
        yield found
