"""A plane in process: requests go straight to the API server's handler, on a memory store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.plane.access.authn.jwt import SigningKey
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.authn.union import Credentials
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.http.message import Headers, Request, Response
from tests.static_tokens import StaticTokens

TOKEN = "admin"
ADMIN = User("admin", (MASTERS, AUTHENTICATED))

JANE = {"authorization": "Bearer jane"}
"""Of a user who may do nothing but what RBAC gives to everybody."""
USERS = {digest(TOKEN): ADMIN, digest("jane"): User("jane", ("dev", AUTHENTICATED), "7")}

MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: Headers


class Api:
    """Talks to one plane as its administrator."""

    def __init__(self, server: ApiServer, root: str = "") -> None:
        self.server = server
        self.root = root
        """Goes before every path: empty for the root plane."""

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, obj: Any, **headers: str) -> Answer:
        return await self.call("POST", path, obj, **headers)

    async def put(self, path: str, obj: Any, **headers: str) -> Answer:
        return await self.call("PUT", path, obj, **headers)

    async def patch(self, path: str, change: Any, media: str = MERGE, **headers: str) -> Answer:
        return await self.call("PATCH", path, change, **{"content_type": media, **headers})

    async def delete(self, path: str, options: Any = None, **headers: str) -> Answer:
        return await self.call("DELETE", path, options, **headers)

    async def call(self, method: str, path: str, obj: Any = None, **headers: str) -> Answer:
        """`headers` are named with underscores: `content_type`."""
        response = await self.server.handle(self.request(method, path, obj, headers))
        assert isinstance(response, Response)
        body = response.body
        assert isinstance(body, bytes | list | tuple), "a stream: call the handler yourself"
        data = body if isinstance(body, bytes) else b"".join(body)
        sent = Headers(response.headers)
        is_json = sent.get("content-type").startswith("application/json")
        value = msgspec.json.decode(data) if is_json else data.decode()
        return Answer(response.status, value, sent)

    def request(
        self, method: str, path: str, obj: Any = None, headers: Mapping[str, str] | None = None
    ) -> Request:
        where, _, query = path.partition("?")
        fields = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        for name, value in (headers or {}).items():
            fields[name.replace("_", "-")] = value
        body = obj if isinstance(obj, bytes) else b"" if obj is None else msgspec.json.encode(obj)
        return Request(method, self.root + where, query, Headers(fields.items()), body)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest(TOKEN): ADMIN})
        yield Api(ApiServer(store, tokens, AllowAll(), random=Random(1)))


@pytest.fixture(scope="session")
def issuer() -> TokenIssuer:
    return TokenIssuer(SigningKey.generate())


@pytest.fixture
async def guarded(issuer: TokenIssuer) -> AsyncIterator[Api]:
    """A server that tells users apart."""
    async with Store(MemoryBackend()) as store:
        credentials = Credentials(USERS, issuer)
        yield Api(ApiServer(store, credentials, Rbac(), random=Random(1), issuer=issuer))
