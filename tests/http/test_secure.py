"""Servers with TLS: clients that are slow, silent, wrong or gone, on each event loop."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import os
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop

from kvestigate.http import tls
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.limits import Limits
from kvestigate.http.message import Handler, Request, Response, Upgrade, WebSocket
from kvestigate.http.pool import HttpClient
from kvestigate.http.server import Server, serve

SECONDS = 20.0
NOW = datetime.datetime.now(datetime.UTC)
CA = CertificateAuthority.create("test CA", now=NOW)
PAIR = CA.issue_server("server", ["127.0.0.1"], now=NOW)
GET = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
LARGE = os.urandom(9_000_000)
"""More than the buffers of two sockets."""

Runs = Callable[[Callable[[], Awaitable[None]]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Runs:
    factory: Any = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def bounded(scenario: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            async with asyncio.timeout(SECONDS):
                await scenario()

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(limited())

    return bounded


async def serving(handler: Handler, **limits: Any) -> Server:
    context = tls.server_context(certificate=PAIR.certificate, key=PAIR.key)
    return await serve(handler, tls=context, limits=Limits(**limits))


async def large(_: Request) -> Response:
    return Response(200, [], LARGE, compress=False)


async def hello(_: Request) -> Response:
    return Response(200, [], b"hello")


async def answers(server: Server) -> bool:
    host, port = server.address
    context = tls.client_context(ca=CA.pair.certificate)
    async with HttpClient(host=host, port=port, tls=context) as client:
        return await (await client.send(Request("GET", "/"), timeout=SECONDS)).read() == b"hello"


def connected(server: Server) -> ssl.SSLSocket:
    """A client that takes an end without a farewell for an attack, as it should."""
    context = tls.client_context(ca=CA.pair.certificate)
    plain = socket.create_connection(server.address)
    return context.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False)


def read_to_the_end(server: Server) -> bytes:
    with connected(server) as client:
        client.sendall(GET)
        parts = iter(lambda: client.recv(65536), b"")
        return b"".join(parts)


def test_an_answer_longer_than_every_buffer_comes_whole_and_ends_with_a_farewell(run: Runs) -> None:
    async def scenario() -> None:
        async with await serving(large) as server:
            got = await asyncio.to_thread(read_to_the_end, server)
            assert got.partition(b"\r\n\r\n")[2] == LARGE

    run(scenario)


def test_a_client_that_does_not_read_stops_the_stream_and_is_cut_off(run: Runs) -> None:
    async def scenario() -> None:
        made = 0
        ended = asyncio.Event()

        async def stream() -> Any:
            nonlocal made
            try:
                while True:
                    made += 1
                    yield bytes(100_000)
            finally:
                ended.set()

        async def handler(_: Request) -> Response:
            return Response(200, [], stream())

        async with await serving(handler, write_timeout=0.2) as server:
            client = await asyncio.to_thread(connected, server)
            with client:
                await asyncio.to_thread(client.sendall, GET)
                await ended.wait()
        assert 0 < made < 1000

    run(scenario)


UNFINISHED = pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ids=["plain HTTP", "nothing", "half a greeting"],
)


@UNFINISHED
def test_while_somebody_does_not_finish_a_handshake_others_are_served(
    run: Runs, said: bytes
) -> None:
    async def scenario() -> None:
        async with await serving(hello) as server:
            _, writer = await asyncio.open_connection(*server.address)
            writer.write(said)
            assert await answers(server)
            writer.close()

    run(scenario)


@UNFINISHED
def test_who_does_not_finish_a_handshake_is_cut_off(run: Runs, said: bytes) -> None:
    async def scenario() -> None:
        async with await serving(hello, handshake_timeout=0.05) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(said)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()

    run(scenario)


def test_who_speaks_plain_http_is_told_so(run: Runs) -> None:
    async def scenario() -> None:
        async with await serving(hello) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = await reader.read()
            writer.close()
        assert answer.startswith(b"HTTP/1.0 400 ")
        assert answer.endswith(b"Client sent an HTTP request to an HTTPS server.\n")

    run(scenario)


def test_who_leaves_before_the_handshake_disturbs_nobody(run: Runs) -> None:
    async def scenario() -> None:
        async with await serving(hello) as server:
            for _ in range(20):
                socket.create_connection(server.address).close()
            assert await answers(server)

    run(scenario)


def test_a_server_that_stops_does_not_wait_for_handshakes(run: Runs) -> None:
    async def scenario() -> None:
        server = await serving(hello)
        reader, writer = await asyncio.open_connection(*server.address)
        assert await answers(server)  # so the first has been accepted too
        await server.close()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

    run(scenario)


@pytest.mark.parametrize("size", [1, 16 * 1024, 16 * 1024 + 1, 3_000_000])
def test_websocket_messages_of_every_size_come_back(run: Runs, size: int) -> None:
    async def echo(channel: WebSocket) -> None:
        while (message := await channel.receive()) is not None:
            await channel.send(message)

    async def handler(_: Request) -> Upgrade:
        return Upgrade(echo)

    async def scenario() -> None:
        context = tls.client_context(ca=CA.pair.certificate)
        async with await serving(handler) as server:
            host, port = server.address
            async with HttpClient(host=host, port=port, tls=context) as client:
                channel = await client.upgrade(Request("GET", "/"), (), timeout=SECONDS)
                message = os.urandom(size)
                await channel.send(message)
                assert await channel.receive() == message
                await channel.close()

    run(scenario)


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Noticing(logging.Handler):
    """Says when the first line is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.noticed = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.noticed.set()


def test_a_server_that_can_open_no_socket_accepts_again_when_it_can(run: Runs) -> None:
    async def scenario() -> None:
        log, noticing = logging.getLogger("kvestigate.http.listener"), Noticing()
        log.addHandler(noticing)
        async with await serving(hello) as server:
            with socket.socket() as late:
                late.setblocking(False)
                with no_more_files():
                    await asyncio.get_running_loop().sock_connect(late, server.address)
                    await noticing.noticed.wait()
                assert await answers(server)
        log.removeHandler(noticing)

    run(scenario)


def greeting() -> bytes:
    """What a client says first."""
    context = tls.client_context(ca=CA.pair.certificate)
    sent = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def answered(client: socket.socket) -> bool:
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def test_of_many_who_come_at_once_one_is_greeted_in_a_turn(run: Runs) -> None:
    async def scenario() -> None:
        async with await serving(hello) as server:
            with contextlib.ExitStack() as stack:
                clients = [
                    stack.enter_context(socket.create_connection(server.address)) for _ in range(20)
                ]
                for client in clients:
                    client.sendall(greeting())
                    client.setblocking(False)
                greeted = [0]
                while greeted[-1] < len(clients):
                    await asyncio.sleep(0)
                    greeted.append(sum(map(answered, clients)))
                assert max(map(int.__sub__, greeted[1:], greeted)) == 1
            assert await answers(server)

    run(scenario)


def test_who_leaves_before_being_greeted_holds_up_nobody(run: Runs) -> None:
    async def scenario() -> None:
        async with await serving(hello) as server:
            for _ in range(5):
                with socket.create_connection(server.address) as client:
                    client.sendall(greeting())
            assert await answers(server)

    run(scenario)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_whose_certificate_is_refused_gets_the_alert(
    run: Runs, version: ssl.TLSVersion
) -> None:
    stranger = CertificateAuthority.create("another CA", now=NOW).issue_client("mallory", now=NOW)
    context = tls.client_context(
        ca=CA.pair.certificate, certificate=stranger.certificate, key=stranger.key
    )
    context.maximum_version = version

    def ask(server: Server) -> None:
        plain = socket.create_connection(server.address)
        with plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
            client.recv(1)

    async def scenario() -> None:
        trusting = tls.server_context(
            certificate=PAIR.certificate, key=PAIR.key, client_ca=CA.pair.certificate
        )
        async with await serve(hello, tls=trusting) as server:
            with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
                await asyncio.to_thread(ask, server)

    run(scenario)
