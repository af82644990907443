"""Proxies of every kind, between our client and our server."""

from __future__ import annotations

import asyncio
import base64
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kvestigate import errors
from kvestigate.http import dial, tls
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.message import Request, Response, Upgrade
from kvestigate.http.pool import HttpClient
from kvestigate.http.server import serve
from tests.http.peers import Clients, RawServers, standard_tls

SECONDS = 10.0
NOW = datetime.datetime.now(datetime.UTC)
CA = CertificateAuthority.create("test CA", now=NOW)
PAIR = CA.issue_server("server", ["127.0.0.1"], now=NOW)
SERVER_TLS = tls.server_context(certificate=PAIR.certificate, key=PAIR.key)
BASIC = base64.b64encode(b"ann:p@ss").decode()


class Proxy:
    """Speaks HTTP proxying or SOCKS5, passes bytes on, and remembers what it was asked."""

    def __init__(self, *, secret: bool = False) -> None:
        self.asked: list[str] = []
        self.secret = secret

    async def http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n")[0].split(" ")
        self.asked.append(f"{method} {target}")
        if self.secret and f"proxy-authorization: Basic {BASIC}\r\n" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif method == "CONNECT":
            host, port = target.split(":")
            writer.write(b"HTTP/1.1 200 Connection established\r\nVia: us\r\n\r\n")
            await self._pass_on(reader, writer, host, int(port))
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy")

    async def socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if self.secret:
            if 2 not in methods:
                writer.write(b"\x05\xff")
                return
            writer.write(b"\x05\x02")
            _, size = await reader.readexactly(2)
            user = await reader.readexactly(size)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            right = (user, password) == (b"ann", b"p@ss")
            writer.write(b"\x01\x00" if right else b"\x01\x01")
            if not right:
                return
        else:
            writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        if kind == 1:
            host = ".".join(map(str, await reader.readexactly(4)))
        else:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host}:{port}")
        if host == "nowhere":
            writer.write(b"\x05\x04\x00\x01" + bytes(6))
            return
        writer.write(b"\x05\x00\x00\x03\x04name\x00\x01")
        await self._pass_on(reader, writer, host, port)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        there, back = await asyncio.open_connection(host, port)
        try:
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        finally:
            back.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


Proxies = Callable[..., Awaitable[tuple[Proxy, str]]]


@pytest.fixture
async def proxied(raw_server: RawServers) -> Proxies:
    async def start(scheme: str, *, secret: bool = False, user: str = "") -> tuple[Proxy, str]:
        proxy = Proxy(secret=secret)
        script = proxy.socks if scheme == "socks5" else proxy.http
        server = await raw_server(script, standard_tls(PAIR) if scheme == "https" else None)
        return proxy, f"{scheme}://{user}127.0.0.1:{server.port}"

    return start


async def hello(request: Request) -> Response | Upgrade:
    if request.path == "/ws":
        return Upgrade(lambda channel: channel.send("hello"))
    return Response(200, body=b"hello " + request.path.encode())


@pytest.fixture
async def plain_port() -> AsyncIterator[int]:
    async with await serve(hello) as server:
        yield server.address[1]


@pytest.fixture
async def tls_port() -> AsyncIterator[int]:
    async with await serve(hello, tls=SERVER_TLS) as server:
        yield server.address[1]


def trusting() -> ssl.SSLContext:
    return tls.client_context(ca=CA.pair.certificate)


@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
async def test_a_tls_origin_is_reached_through_a_tunnel(
    scheme: str, secret: bool, proxied: Proxies, tls_port: int, client_of: Clients
) -> None:
    proxy, url = await proxied(scheme, secret=secret, user="ann:p%40ss@" if secret else "")
    client = client_of(tls_port, tls=trusting(), proxy=url)
    for path in ("/1", "/2"):
        answer = await client.send(Request("GET", path), timeout=SECONDS)
        assert await answer.read() == f"hello {path}".encode()
    verb = "" if scheme == "socks5" else "CONNECT "
    assert proxy.asked == [f"{verb}127.0.0.1:{tls_port}"]


async def test_a_plain_origin_behind_an_http_proxy_gets_absolute_requests(
    proxied: Proxies, plain_port: int, client_of: Clients
) -> None:
    proxy, url = await proxied("http", secret=True, user="ann:p%40ss@")
    client = client_of(plain_port, proxy=url)
    answer = await client.send(Request("GET", "/a", "b=c"), timeout=SECONDS)
    assert await answer.read() == b"proxy"
    assert proxy.asked == [f"GET http://127.0.0.1:{plain_port}/a?b=c"]


async def test_a_plain_origin_behind_socks_is_reached_through_a_tunnel(
    proxied: Proxies, plain_port: int, client_of: Clients
) -> None:
    _, url = await proxied("socks5")
    client = client_of(plain_port, proxy=url)
    assert await (await client.send(Request("GET", "/"), timeout=SECONDS)).read() == b"hello /"


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
async def test_websockets_go_through_proxies(
    scheme: str, proxied: Proxies, tls_port: int, client_of: Clients
) -> None:
    _, url = await proxied(scheme)
    client = client_of(tls_port, tls=trusting(), proxy=url)
    channel = await client.upgrade(Request("GET", "/ws"), timeout=SECONDS)
    assert await channel.receive() == "hello"
    assert await channel.receive() is None
    await channel.close()


@pytest.mark.parametrize(
    ("scheme", "user", "message"),
    [
        ("http", "", "407"),
        ("http", "ann:wrong@", "407"),
        ("socks5", "", "another way of authentication"),
        ("socks5", "ann:wrong@", "refused the user and password"),
    ],
)
async def test_a_proxy_that_refuses_is_named(
    scheme: str, user: str, message: str, proxied: Proxies, tls_port: int, client_of: Clients
) -> None:
    _, url = await proxied(scheme, secret=True, user=user)
    client = client_of(tls_port, tls=trusting(), proxy=url)
    with pytest.raises(errors.ConnectionFailed, match=message):
        await client.send(Request("GET", "/"), timeout=SECONDS)


async def test_names_are_left_to_the_socks_proxy(proxied: Proxies) -> None:
    proxy, url = await proxied("socks5")
    async with HttpClient(host="nowhere", port=1, proxy=url) as client:
        with pytest.raises(errors.ConnectionFailed, match="nowhere:1: host unreachable"):
            await client.send(Request("GET", "/"), timeout=SECONDS)
    assert proxy.asked == ["nowhere:1"]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n\r\n"])
async def test_what_is_no_proxy_is_an_error(
    scheme: str, answer: bytes, raw_server: RawServers, client_of: Clients
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)

    server = await raw_server(script)
    client = client_of(1, tls=trusting(), proxy=f"{scheme}://127.0.0.1:{server.port}")
    with pytest.raises(errors.ConnectionFailed, match="proxy"):
        await client.send(Request("GET", "/"), timeout=SECONDS)


async def test_a_proxy_that_is_down_is_told_from_a_server_that_is_down(client_of: Clients) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = client_of(1, proxy=f"http://127.0.0.1:{port}")
        with pytest.raises(errors.ConnectionFailed, match=f"proxy 127.0.0.1:{port} refused"):
            await client.send(Request("GET", "/"), timeout=SECONDS)


@pytest.mark.parametrize(
    "url", ["proxy:3128", "ftp://proxy", "http://", "//proxy", "", "http://a:b"]
)
def test_proxy_urls_that_are_none(url: str) -> None:
    with pytest.raises(errors.InputError):
        HttpClient(host="a", port=1, proxy=url)


def test_a_bad_proxy_url_is_shown_without_its_credentials() -> None:
    with pytest.raises(errors.InputError) as caught:
        HttpClient(host="a", port=1, proxy="ftp://ann:secret@proxy")
    assert "secret" not in caught.value.message


async def test_connecting_is_bounded(raw_server: RawServers, client_of: Clients) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server = await raw_server(script)
    client = client_of(server.port, tls=trusting(), connect_timeout=0.05)
    with pytest.raises(errors.DeadlineExceeded, match=f"127.0.0.1:{server.port}"):
        await client.send(Request("GET", "/"), timeout=SECONDS)


@pytest.mark.parametrize(
    ("failure", "message", "hint"),
    [
        (socket.gaierror(-2, "Name or service not known"), "cannot be resolved", "DNS"),
        (ConnectionRefusedError(111, "refused"), "refused the connection", "running"),
        (ConnectionResetError(104, "Connection reset by peer"), "closed the connection", ""),
        (OSError(113, "No route to host"), "No route to host", ""),
    ],
)
def test_failures_are_explained(failure: OSError, message: str, hint: str) -> None:
    explained = dial.explain(failure, "host:1")
    assert message in explained.message
    assert "host:1" in explained.message
    assert hint in (explained.hint or "")
