"""A plane whose one node is a small HTTPS server that says what it was asked."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.egress.addresses import Allowance
from kvestigate.cluster.plane.egress.dialer import Dialer
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.errors import ConnectionFailed
from kvestigate.http.certificates import CertificateAuthority, subject_of
from kvestigate.http.handshake import offered_subprotocols
from kvestigate.http.message import Request, Response, Upgrade, WebSocket
from kvestigate.http.server import Server, serve
from kvestigate.http.tls import client_context, server_context
from tests.cluster.plane.conftest import ADMIN, TOKEN, Api
from tests.static_tokens import StaticTokens

NODE = "node-1"
PODS = "/api/v1/namespaces/default/pods"


@dataclass
class Kubelet:
    """Answers everything, and remembers what it was asked."""

    asked: list[Request] = field(default_factory=list)
    status: int = 200
    text: str = "one\ntwo\n"
    headers: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0
    breaks: bool = False
    """Whether it breaks off before the end of an answer."""

    async def handle(self, request: Request) -> Response | Upgrade:
        self.asked.append(request)
        if "sec-websocket-key" in request.headers and self.status == 200:
            offered = offered_subprotocols(request)
            return Upgrade(_echo, offered[0] if offered else None)
        fields = [("content-type", "text/plain"), *self.headers]
        return Response(self.status, fields, self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        for line in self.text.splitlines(keepends=True):
            yield line.encode()
        if self.breaks:
            raise ConnectionFailed("the disk is gone")

    @property
    def target(self) -> str:
        [request] = self.asked
        return f"{request.path}?{request.query}" if request.query else request.path

    @property
    def caller(self) -> str:
        """Who the certificate says we are."""
        [request] = self.asked
        assert request.peer.certificate is not None
        return subject_of(request.peer.certificate)[0]


async def _echo(socket: WebSocket) -> None:
    while (message := await socket.receive()) is not None:
        await socket.send(message)
        if message == b"bye":
            return


@pytest.fixture(scope="session")
def authority() -> CertificateAuthority:
    return CertificateAuthority.create("test-ca", now=now())


def reaching(tls: ssl.SSLContext) -> Backends:
    """The way to kubelets that are shown `tls`, on a machine whose operator allows loopback."""
    return Backends(lambda plane: tls, Dialer([Allowance.parse("127.0.0.0/8")]))


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@pytest.fixture
def kubelet_type() -> type[Kubelet]:
    return Kubelet


@pytest.fixture
async def kubelet(
    authority: CertificateAuthority, kubelet_type: type[Kubelet]
) -> AsyncIterator[Kubelet]:
    pair = authority.issue_server(NODE, ["127.0.0.1"], now=now())
    tls = server_context(
        certificate=pair.certificate, key=pair.key, client_ca=authority.pair.certificate
    )
    made = kubelet_type()
    async with await serve(made.handle, tls=tls) as server:
        made.port = server.address[1]
        yield made


@pytest.fixture
async def api(authority: CertificateAuthority, kubelet: Kubelet) -> AsyncIterator[Api]:
    """A plane with one node and the pods that tests ask about."""
    pair = authority.issue_client("plane", now=now())
    tls = client_context(ca=authority.pair.certificate, certificate=pair.certificate, key=pair.key)
    tokens = StaticTokens({digest(TOKEN): ADMIN})
    async with Store(MemoryBackend()) as store, aclosing(reaching(tls)) as backends:
        server = ApiServer(store, tokens, AllowAll(), random=Random(1), backends=backends)
        made = Api(server)
        await _node(made, kubelet.port)
        await _pod(made, "web", NODE, "main")
        await _pod(made, "pair", NODE, "main", "side")
        await _pod(made, "lost", "gone", "main")
        await _pod(made, "waiting", "", "main")
        yield made


@pytest.fixture
async def front(api: Api) -> AsyncIterator[Server]:
    """The plane on a port: for what needs a connection."""
    async with await serve(api.server.handle) as server:
        yield server


async def text_of(response: Response) -> str:
    """The body of an answer that streams."""
    body: Any = response.body
    if isinstance(body, bytes):
        return body.decode()
    return b"".join([piece async for piece in body]).decode()


async def ask(api: Api, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Status, and the body as text or the message of a Status."""
    response = await api.server.handle(api.request(method, path, None, headers))
    assert isinstance(response, Response)
    text = await text_of(response)
    if text.startswith('{"kind":"Status"'):
        return response.status, msgspec.json.decode(text)["message"]
    return response.status, text


async def _node(api: Api, port: int) -> None:
    made = await api.post("/api/v1/nodes", {"metadata": {"name": NODE}})
    assert made.status == 201, made.body
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    patched = await api.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})
    assert patched.status == 200, patched.body


async def _pod(api: Api, name: str, node: str, *containers: str) -> None:
    spec: dict[str, Any] = {"containers": [{"name": each, "image": "image"} for each in containers]}
    if node:
        spec["nodeName"] = node
    made = await api.post(PODS, {"metadata": {"name": name}, "spec": spec})
    assert made.status == 201, made.body
