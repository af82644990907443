"""A server on loopback with two tenants: ann is cluster-admin of plane `a`, ben of plane `b`."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.plane.front.serving import Listen, ServeOptions, Serving, serving
from kvestigate.http.message import Headers, Request
from kvestigate.http.pool import HttpClient
from kvestigate.http.tls import client_context

TOKENS = """\
ann-token,ann,,tenants
ben-token,ben,,tenants
eve-token,eve,,tenants
"""
CANARY = "b-canary-4711"
"""The value of plane b's Secret: no answer to ann or eve may have it."""
_ENCODED = base64.b64encode(CANARY.encode()).decode()
A, B = "/clusters/a/control-plane", "/clusters/b/control-plane"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMIN = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    text: str
    seconds: float = 0.0

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.text)

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Tenant:
    """Sends requests over TLS as the user of a token."""

    def __init__(self, client: HttpClient, token: str) -> None:
        self._client = client
        self._token = token

    def with_token(self, token: str) -> Tenant:
        return Tenant(self._client, token)

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, value: Any, **headers: str) -> Reply:
        return await self.call("POST", path, value, **headers)

    async def patch(self, path: str, value: Any, **headers: str) -> Reply:
        media = {"content_type": "application/merge-patch+json"}
        return await self.call("PATCH", path, value, **{**media, **headers})

    async def delete(self, path: str) -> Reply:
        return await self.call("DELETE", path)

    async def call(self, method: str, path: str, value: Any = None, **headers: str) -> Reply:
        where, _, query = path.partition("?")
        fields = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        fields.update({name.replace("_", "-"): text for name, text in headers.items()})
        body = b"" if value is None else value
        if not isinstance(body, bytes):
            body = msgspec.json.encode(value)
        request = Request(method, where, query, Headers(fields.items()), body)
        answer = await self._client.send(request, timeout=60)
        text = (await answer.read()).decode(errors="replace")
        return Reply(answer.status, text.replace(_ENCODED, CANARY))

    async def until(self, collection: str, name: str, met: Callable[[Reply], bool]) -> Reply:
        """The object as soon as `met` holds."""
        fields = Headers([("authorization", f"Bearer {self._token}")])
        watch = Request("GET", collection, "watch=true", fields)
        async with asyncio.timeout(20):
            events = await self._client.send(watch, timeout=20)
            try:
                while not met(reply := await self.get(f"{collection}/{name}")):
                    await anext(aiter(events))
            finally:
                await events.aclose()
        return reply


@dataclass(frozen=True, slots=True)
class Site:
    """A server with its tenants."""

    started: Serving
    owner: Tenant
    ann: Tenant
    """Cluster-admin of plane a; nothing anywhere else."""
    ben: Tenant
    """Cluster-admin of plane b; nothing anywhere else."""
    eve: Tenant
    """Authenticated, and nothing else."""

    @property
    def port(self) -> int:
        return int(self.started.url.rpartition(":")[2])

    async def planes(self) -> set[str]:
        listed = await self.owner.get("/clusters")
        return {item["id"] for item in listed.body["items"]}


def binding(user: str, name: str = "admin") -> dict[str, Any]:
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    return {"metadata": {"name": name}, "roleRef": ADMIN, "subjects": [subject]}


@asynccontextmanager
async def opened(options: ServeOptions) -> AsyncIterator[Site]:
    """The server of these options, with planes and tenants."""
    async with serving(options) as started:
        port = int(started.url.rpartition(":")[2])
        trust = client_context(ca=started.authority.pair.certificate)
        async with HttpClient(host="127.0.0.1", port=port, tls=trust) as client:
            owner = Tenant(client, started.token)
            site = Site(
                started,
                owner,
                *(Tenant(client, f"{name}-token") for name in ("ann", "ben", "eve")),
            )
            for plane, user in (("a", "ann"), ("b", "ben")):
                assert (await owner.post("/clusters", {"id": plane})).status == 201
                root = f"/clusters/{plane}/control-plane"
                made = await owner.post(f"{root}{RBAC}/clusterrolebindings", binding(user))
                assert made.status == 201, made.text
            secret = {"metadata": {"name": "top"}, "stringData": {"value": CANARY}}
            made = await owner.post(f"{B}/api/v1/namespaces/default/secrets", secret)
            assert made.status == 201, made.text
            yield site


def options_in(directory: Path, **changes: Any) -> ServeOptions:
    tokens = directory / "tokens.csv"
    tokens.write_text(TOKENS)
    return ServeOptions(
        directory / "data",
        Listen("127.0.0.1", 0),
        memory=changes.pop("memory", True),
        token_file=tokens,
        **changes,
    )


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with opened(options_in(tmp_path)) as running:
        yield running
