from __future__ import annotations

import base64
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from kvestigate import __version__, errors
from kvestigate.client.access import Access, Impersonation, Tls
from kvestigate.client.api import PODS
from kvestigate.client.auth.interface import Credential
from kvestigate.client.auth.static import Anonymous, Static
from kvestigate.client.connect import connect
from kvestigate.client.endpoint import Endpoint
from kvestigate.client.http import HttpTransport
from kvestigate.http.certificates import CertificateAuthority, subject_of
from kvestigate.http.message import Handler, Request, Response, Upgrade, WebSocket
from kvestigate.http.server import serve
from kvestigate.http.tls import server_context
from tests.client.scripted import Script, answer, forever, pod, status, stream


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[Access]:
    async with await serve(handler) as server:
        host, port = server.address
        yield Access(Endpoint("http", host, port, "/clusters/x"), Anonymous(), namespace="shop")


class Renewing:
    """Credentials of which the server rejects the first `stale` ones."""

    def __init__(self, *credentials: Credential) -> None:
        self._credentials = list(credentials)
        self.rejections: list[Credential] = []

    async def current(self) -> Credential:
        return self._credentials[0]

    async def rejected(self, used: Credential) -> bool:
        self.rejections.append(used)
        if len(self._credentials) > 1:
            self._credentials.pop(0)
            return True
        return False

    def describe(self) -> str:
        return "renewing"


@pytest.mark.parametrize(
    ("credential", "authorization"),
    [
        (Credential(), ""),
        (Credential(token="abc"), "Bearer abc"),
        (
            Credential(basic=("jürgen", "pass:word")),
            "Basic " + base64.b64encode("jürgen:pass:word".encode()).decode(),
        ),
    ],
    ids=["none", "token", "basic"],
)
async def test_every_request_says_who_sends_it(credential: Credential, authorization: str) -> None:
    server = Script(answer(pod("a")))
    async with (
        served(server) as access,
        connect(replace(access, credentials=Static(credential))) as api,
    ):
        await api.get(PODS, "a")
    [request] = server.requests
    assert request.path == "/clusters/x/api/v1/namespaces/shop/pods/a"
    assert request.headers.get("authorization") == authorization
    assert request.headers.get_all("user-agent") == [f"kvestigate/{__version__}"]
    assert request.headers.get("accept-encoding") == "gzip"


async def test_impersonation_is_on_every_request() -> None:
    server = Script(answer(pod("a")))
    whom = Impersonation("jane", uid="7", groups=("dev", "ops"), extra={"a/b": ("c",)})
    async with served(server) as access, connect(replace(access, impersonate=whom)) as api:
        await api.get(PODS, "a")
    headers = server.requests[0].headers
    assert headers.get("impersonate-user") == "jane"
    assert headers.get("impersonate-uid") == "7"
    assert headers.get_all("impersonate-group") == ["dev", "ops"]
    assert headers.get("impersonate-extra-a%2fb") == "c"


async def test_compressed_answers_are_read_unless_compression_is_off() -> None:
    async def server(request: Request) -> Response:
        if "gzip" in request.headers.get("accept-encoding"):
            return Response(200, [("content-encoding", "gzip")], gzip.compress(b'{"zip": 1}'))
        return Response(200, [], b'{"zip": 0}')

    async with served(server) as access:
        async with connect(access) as api:
            assert await api.get(PODS, "a") == {"zip": 1}
        async with connect(replace(access, disable_compression=True)) as api:
            assert await api.get(PODS, "a") == {"zip": 0}


async def _only_fresh(request: Request) -> Response | Upgrade:
    if request.headers.get("authorization") != "Bearer fresh":
        return status(401, "Unauthorized", "who are you?")
    if "upgrade" in request.headers:
        return Upgrade(_goodbye, "p")
    return answer(pod("a"))


async def _goodbye(socket: WebSocket) -> None:
    await socket.send("hello")


STALE, FRESH = Credential(token="stale"), Credential(token="fresh")


async def test_a_rejected_credential_is_renewed_and_the_request_repeated() -> None:
    credentials = Renewing(STALE, FRESH)
    async with (
        served(_only_fresh) as access,
        connect(replace(access, credentials=credentials)) as api,
    ):
        assert (await api.get(PODS, "a"))["metadata"]["name"] == "a"
    assert credentials.rejections == [STALE]


async def test_a_rejected_websocket_is_repeated_too() -> None:
    async with served(_only_fresh) as access:
        transport = HttpTransport(replace(access, credentials=Renewing(STALE, FRESH)))
        socket = await transport.upgrade(Request("GET", "/exec"), ["p"], timeout=10)
        assert await socket.receive() == "hello"
        await socket.close()
        await transport.aclose()


async def test_a_request_is_repeated_only_once() -> None:
    credentials = Renewing(STALE, Credential(token="stale too"), FRESH)
    async with (
        served(_only_fresh) as access,
        connect(replace(access, credentials=credentials)) as api,
    ):
        with pytest.raises(errors.Unauthorized, match="who are you"):
            await api.get(PODS, "a")


async def test_credentials_that_cannot_be_renewed_end_it() -> None:
    credentials = Renewing(STALE)
    async with (
        served(_only_fresh) as access,
        connect(replace(access, credentials=credentials)) as api,
    ):
        with pytest.raises(errors.Unauthorized):
            await api.get(PODS, "a")
    assert credentials.rejections == [STALE]


async def test_a_server_that_is_not_there_is_said_to_be_so() -> None:
    async with served(Script(answer({}))) as access:
        pass
    async with connect(access) as api:
        with pytest.raises(errors.ConnectionFailed):
            await api.get(PODS, "a")


async def test_a_renewed_certificate_is_shown_on_the_next_request() -> None:
    now = datetime.now(UTC)
    authority = CertificateAuthority.create("test", now=now)
    pair = authority.issue_server("api", ["api.example"], now=now)
    tls = server_context(
        certificate=pair.certificate, key=pair.key, client_ca=authority.pair.certificate
    )
    clients = [authority.issue_client(name, now=now) for name in ("first", "second", "third")]
    holder = Renewing(*(Credential(certificate=it.certificate, key=it.key) for it in clients))

    async def who(request: Request) -> Response:
        if request.query:
            return stream(b"{}\n", then=forever)
        assert request.peer.certificate is not None
        return answer({"name": subject_of(request.peer.certificate)[0]})

    async with await serve(who, tls=tls) as server:
        host, port = server.address
        access = Access(
            Endpoint("https", host, port),
            holder,
            tls=Tls(ca=authority.pair.certificate, server_name="api.example"),
        )
        async with connect(access) as api:
            assert await api.get(PODS, "a") == {"name": "first"}
            stream_of_first = await api.exchange.transport.send(
                Request("GET", "/", "stream"), timeout=10
            )
            await holder.rejected(await holder.current())
            assert await api.get(PODS, "a") == {"name": "second"}
            # What the first certificate opened goes on.
            assert await anext(aiter(stream_of_first)) == b"{}\n"
            await holder.rejected(await holder.current())
            assert await api.get(PODS, "a") == {"name": "third"}
