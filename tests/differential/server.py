"""The two servers that scripts run on."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Protocol

from kvestigate.cluster.plane.access.authn.jwt import SigningKey
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.authn.union import Credentials
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.egress.addresses import Allowance
from kvestigate.cluster.plane.egress.dialer import Dialer
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.http.message import Headers, Request, Response

TIMEOUT = 30.0
QUIET = 10.0
"""A plane that has an event to send does so at once."""
AGENT = "differential/1.0"
"""Not a browser and not curl: those get other answers. The name before `/` manages fields."""
TOKEN = "token-of-the-admin"
_USERS = {
    digest(TOKEN): User("token-admin", (MASTERS, AUTHENTICATED), "uid-of-the-admin"),
    digest("token-of-the-reader"): User(
        "token-reader", ("readers", "watchers", AUTHENTICATED), "uid-of-the-reader"
    ),
}
"""Those of the real server's token file."""

_OF_INTEREST = ("content-type", "retry-after", "warning")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, list[str]]
    """Those of interest."""
    data: bytes = b""
    lines: list[bytes] = field(default_factory=list)
    """Of a watch that was accepted."""


class Server(Protocol):
    patience: Sequence[float]
    """The pauses before asking anew for what the server does some time after it was told: the
    real one learns of CRDs, roles and quotas later, a plane at once."""

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply: ...

    async def watch(self, path: str, headers: Mapping[str, str], count: int) -> Reply:
        """The first `count` events; fewer when the stream ends before."""

    async def settle_quotas(self, namespace: str) -> None:
        """Return when the quotas of the namespace are kept as they were last written."""


class RealServer:
    """kube-apiserver over HTTPS, one connection a request, as plain as can be."""

    patience: Sequence[float] = (0.05,) * 200

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._port = port
        self._context = context

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply:
        connection, response = self._ask(method, path, headers, body)
        try:
            return Reply(response.status, _interesting(response.getheaders()), response.read())
        finally:
            connection.close()

    async def watch(self, path: str, headers: Mapping[str, str], count: int) -> Reply:
        self._catch_up(path)
        connection, response = self._ask("GET", path, headers, None)
        try:
            found = _interesting(response.getheaders())
            if response.status != 200:
                return Reply(response.status, found, response.read())
            lines: list[bytes] = []
            while len(lines) < count and (line := response.readline()):
                lines.append(line)
            return Reply(200, found, lines=lines)
        except TimeoutError:
            raise AssertionError(f"{path}: {len(lines)} of {count} events came") from None
        finally:
            connection.close()

    def _catch_up(self, path: str) -> None:
        """Watches are served from memory, which may lag behind what was written; a list waits."""
        collection = path.partition("?")[0].replace("/v1/watch/", "/v1/")
        connection, response = self._ask("GET", f"{collection}?limit=1", {}, None)
        response.read()
        connection.close()

    async def settle_quotas(self, namespace: str) -> None:
        """The server learns of quotas in the order in which they were written: so of one more,
        which refuses leases for want of a count, after all others."""
        quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
        hard = {"count/leases.coordination.k8s.io": "0"}
        last = {"metadata": {"name": "last"}, "spec": {"hard": hard}}
        merge = {"content-type": "application/merge-patch+json"}
        await self._expect(201, "POST", quotas, {}, last)
        await self._expect(200, "PATCH", f"{quotas}/last/status", merge, {"status": {"hard": hard}})
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases?dryRun=All"
        lease = {"metadata": {"name": "any"}}
        await self._expect(403, "POST", leases, {}, lease)
        await self._expect(200, "DELETE", f"{quotas}/last", {}, {})
        await self._expect(201, "POST", leases, {}, lease)

    async def _expect(
        self, status: int, method: str, path: str, headers: Mapping[str, str], body: object
    ) -> None:
        data = json.dumps(body).encode()
        reply = await self.send(method, path, headers, data)
        for pause in self.patience:
            if reply.status == status:
                return
            await asyncio.sleep(pause)
            reply = await self.send(method, path, headers, data)
        raise AssertionError(f"{method} {path}: {reply.status} and not {status}: {reply.data!r}")

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, context=self._context, timeout=TIMEOUT
        )
        connection.request(method, path, body, _complete(headers))
        return connection, connection.getresponse()


class PlaneServer:
    """A plane's handler, called in this process."""

    patience: Sequence[float] = ()

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply:
        response = await self._ask(method, path, headers, body)
        content = response.body
        if isinstance(content, AsyncIterator):
            async with asyncio.timeout(TIMEOUT):
                content = [piece async for piece in content]
        data = content if isinstance(content, bytes) else b"".join(content)
        if method == "HEAD":
            data = b""  # the HTTP front keeps it to itself
        return Reply(response.status, _interesting(response.headers), data)

    async def watch(self, path: str, headers: Mapping[str, str], count: int) -> Reply:
        response = await self._ask("GET", path, headers, None)
        found = _interesting(response.headers)
        if not isinstance(response.body, AsyncIterator):
            content = response.body
            data = content if isinstance(content, bytes) else b"".join(content)
            return Reply(response.status, found, data)
        return Reply(response.status, found, lines=await _lines(response.body, count))

    async def settle_quotas(self, namespace: str) -> None:
        """They are, at once."""

    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        where, _, query = path.partition("?")
        fields = Headers(_complete(headers).items())
        response = await self._server.handle(Request(method, where, query, fields, body or b""))
        assert isinstance(response, Response), f"{method} {path} was upgraded"
        return response


@asynccontextmanager
async def plane_server() -> AsyncIterator[PlaneServer]:
    """A new plane and its server."""
    issuer = TokenIssuer(_signing_key())
    webhooks = Dialer([Allowance.parse("127.0.0.0/8")])
    async with Store(MemoryBackend()) as store, aclosing(Backends(dialer=webhooks)) as backends:
        credentials = Credentials(_USERS, issuer)
        server = ApiServer(
            store, credentials, Rbac(), random=Random(1), issuer=issuer, backends=backends
        )
        yield PlaneServer(server)


@cache
def _signing_key() -> SigningKey:
    return SigningKey.generate()


async def _lines(stream: AsyncIterator[bytes], count: int) -> list[bytes]:
    """The first lines of a stream, which is closed then."""
    buffer, lines = b"", list[bytes]()
    try:
        async with asyncio.timeout(QUIET):
            while len(lines) < count:
                buffer += await anext(stream)
                *whole, buffer = buffer.split(b"\n")
                lines += whole
    except StopAsyncIteration:
        pass
    except TimeoutError:
        lines.append(b'{"type":"NONE","object":"no further event came"}')
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    return lines[:count]


def _complete(headers: Mapping[str, str]) -> dict[str, str]:
    """With what every request carries; an empty value leaves a header out."""
    base = {
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "accept": "application/json",
        "user-agent": AGENT,
    }
    return {name: value for name, value in {**base, **headers}.items() if value}


def _interesting(headers: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        if name.lower() in _OF_INTEREST:
            found.setdefault(name.lower(), []).append(value)
    return found
