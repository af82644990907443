"""A plane in process that refuses what a test says, and counts what it was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random

import msgspec
import pytest

from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.errors import ApiError, to_status
from kvestigate.http.message import Handler, Request, Response, Upgrade
from tests.static_tokens import StaticTokens


@dataclass
class Front:
    """Stands before a plane."""

    inner: Handler
    api: Api = field(init=False)
    refusing: dict[str, ApiError] = field(default_factory=dict)
    """Path -> what is answered there instead."""
    exposing: dict[str, bytes] = field(default_factory=dict)
    """Path -> figures that are answered there instead."""
    asked: Counter[str] = field(default_factory=Counter)
    """First pages of lists, by path."""

    def __post_init__(self) -> None:
        self.api = Api(InProcessTransport(self.handle, headers=[("authorization", "Bearer t")]))

    async def handle(self, request: Request) -> Response | Upgrade:
        if "continue=" not in request.query:
            self.asked[request.path] += 1
        if request.path in self.exposing:
            return Response(200, [("content-type", "text/plain")], self.exposing[request.path])
        error = self.refusing.get(request.path)
        if error is None:
            return await self.inner(request)
        body = msgspec.json.encode(to_status(error))
        return Response(error.http_code, [("content-type", "application/json")], body)


@pytest.fixture
async def front() -> AsyncIterator[Front]:
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest("t"): User("admin", (MASTERS, AUTHENTICATED))})
        yield Front(ApiServer(store, tokens, AllowAll(), random=Random(1)).handle)
