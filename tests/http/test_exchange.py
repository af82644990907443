"""Our client and our server together, on each event loop, plain and over TLS."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvloop

from kvestigate import errors
from kvestigate.http import tls
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.limits import Limits
from kvestigate.http.message import Handler, Headers, Request, Response, Upgrade, WebSocket
from kvestigate.http.pool import HttpClient
from kvestigate.http.server import Server, serve

SECONDS = 20.0
NOW = datetime.datetime.now(datetime.UTC)
CA = CertificateAuthority.create("test CA", now=NOW)
PAIR = CA.issue_server("server", ["127.0.0.1"], now=NOW)


class Ground:
    """An event loop and a kind of connection."""

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop], tls: bool) -> None:
        self._loop_factory = loop_factory
        self._tls = tls

    def run(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(SECONDS):
                await scenario()

        with asyncio.Runner(loop_factory=self._loop_factory) as runner:
            runner.run(bounded())

    @contextlib.asynccontextmanager
    async def pair(
        self, handler: Handler, limits: Limits | None = None
    ) -> AsyncIterator[tuple[HttpClient, Server]]:
        server_tls = client_tls = None
        if self._tls:
            server_tls = tls.server_context(certificate=PAIR.certificate, key=PAIR.key)
            client_tls = tls.client_context(ca=CA.pair.certificate)
        async with await serve(handler, tls=server_tls, limits=limits) as server:
            host, port = server.address
            async with HttpClient(host=host, port=port, tls=client_tls) as client:
                yield client, server


@pytest.fixture(
    params=[(loop, over) for loop in ("asyncio", "uvloop") for over in ("plain", "TLS")],
    ids="-".join,
)
def ground(request: pytest.FixtureRequest) -> Ground:
    loop, over = request.param
    factory: Any = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    return Ground(factory, over == "TLS")


async def echo(request: Request) -> Response:
    fields = [("x-method", request.method), ("x-query", request.query)]
    return Response(200, fields, request.body)


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 3_000_000])
@pytest.mark.parametrize("accept", ["gzip", "identity"])
def test_bodies_of_every_size_come_back(ground: Ground, size: int, accept: str) -> None:
    body = os.urandom(size)

    async def scenario() -> None:
        async with ground.pair(echo) as (client, _):
            request = Request("POST", "/", "a=b", Headers([("accept-encoding", accept)]), body)
            answer = await client.send(request, timeout=SECONDS)
            assert answer.headers.get("x-query") == "a=b"
            assert await answer.read() == body

    ground.run(scenario)


@pytest.mark.parametrize(
    "sizes",
    [
        [10, 70_000],
        [1] * 100_000,
        [64 * 1024] * 40,
        [0, 300_000, 5, 0, 1_000_000, 1, 64 * 1024, 7],
    ],
    ids=["two", "crumbs", "even", "uneven"],
)
def test_pieces_of_every_size_arrive_in_order(ground: Ground, sizes: list[int]) -> None:
    pieces = [os.urandom(size) for size in sizes]

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces)

    async def scenario() -> None:
        async with ground.pair(handler) as (client, _):
            for _ in range(2):
                answer = await client.send(Request("GET", "/"), timeout=SECONDS)
                assert await answer.read() == b"".join(pieces)

    ground.run(scenario)


def test_an_answer_that_breaks_off_is_no_whole_one(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    broken: list[Any] = [bytes(100_000)] * 50 + ["text"]

    async def handler(request: Request) -> Response:
        return Response(200, body=broken)

    async def scenario() -> None:
        async with ground.pair(handler) as (client, _):
            answer = await client.send(Request("GET", "/"), timeout=SECONDS)
            if answer.status == 200:
                with pytest.raises(errors.KvestigateError):
                    await answer.read()

    ground.run(scenario)
    assert "failed" in caplog.text


def test_many_requests_at_once_each_get_their_own_answer(ground: Ground) -> None:
    async def handler(request: Request) -> Response:
        if int(request.body) % 3 == 0:
            await asyncio.sleep(0)
        return Response(200, body=request.body)

    async def scenario() -> None:
        async with ground.pair(handler) as (client, server):

            async def ask(number: int) -> None:
                request = Request("POST", "/", body=b"%d" % number)
                assert await (await client.send(request, timeout=SECONDS)).read() == request.body

            for start in range(0, 300, 30):
                await asyncio.gather(*[ask(number) for number in range(start, start + 30)])
            assert len(server.services) <= 30

    ground.run(scenario)


def test_a_stream_arrives_piece_by_piece(ground: Ground) -> None:
    received = asyncio.Queue[bytes]()

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(5):
            yield b"%d" % number
            # Nothing more before the client has this one: it cannot be buffered anywhere.
            assert await received.get() == b"%d" % number

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces())

    async def scenario() -> None:
        async with ground.pair(handler) as (client, _):
            answer = await client.send(Request("GET", "/"), timeout=SECONDS)
            async for piece in answer:
                received.put_nowait(piece)
            assert received.empty()

    ground.run(scenario)


def test_large_streams_flow_at_the_readers_pace(ground: Ground) -> None:
    made = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(1000):
            made += 1
            yield bytes(100_000)

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces())

    async def scenario() -> None:
        async with ground.pair(handler) as (client, _):
            answer = await client.send(Request("GET", "/"), timeout=SECONDS)
            total = 0
            most_ahead = 0
            async for piece in answer:
                total += len(piece)
                most_ahead = max(most_ahead, made * 100_000 - total)
            assert total == 100_000_000
            assert most_ahead < 20_000_000

    ground.run(scenario)


def test_leaving_a_stream_closes_it_on_the_server(ground: Ground) -> None:
    closed = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            yield b"one"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces())

    async def scenario() -> None:
        async with ground.pair(handler) as (client, _):
            answer = await client.send(Request("GET", "/"), timeout=SECONDS)
            async for piece in answer:
                assert piece == b"one"
                break
            await answer.aclose()
            await closed.wait()

    ground.run(scenario)


def test_a_server_that_stops_ends_streams_properly(ground: Ground) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.Event().wait()

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces())

    async def scenario() -> None:
        async with ground.pair(handler) as (client, server):
            answer = await client.send(Request("GET", "/"), timeout=SECONDS)
            stopping: asyncio.Task[None] | None = None
            async for piece in answer:
                assert piece == b"one"
                stopping = asyncio.create_task(server.close())
            assert stopping is not None
            await stopping

    ground.run(scenario)


def test_websockets(ground: Ground) -> None:
    async def run(channel: WebSocket) -> None:
        while (message := await channel.receive()) is not None:
            await channel.send(message)

    async def handler(request: Request) -> Upgrade:
        return Upgrade(run, "two")

    async def scenario() -> None:
        async with ground.pair(handler) as (client, _):
            channel = await client.upgrade(Request("GET", "/"), ["one", "two"], timeout=SECONDS)
            assert channel.subprotocol == "two"
            for message in (b"", "text", bytes(2_000_000)):
                await channel.send(message)
                assert await channel.receive() == message
            await channel.close()

    ground.run(scenario)


def test_an_idle_connection_the_server_gave_up_goes_unnoticed(ground: Ground) -> None:
    async def scenario() -> None:
        async with ground.pair(echo, Limits(idle_timeout=0.02)) as (client, server):
            await (await client.send(Request("GET", "/"), timeout=SECONDS)).read()
            [service] = server.services
            await asyncio.wait([service.task])
            assert (await client.send(Request("GET", "/"), timeout=SECONDS)).status == 200

    ground.run(scenario)


def test_a_closed_client_refuses_and_fails_what_was_open(ground: Ground) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.Event().wait()

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces())

    async def scenario() -> None:
        async with ground.pair(handler) as (client, _):
            answer = await client.send(Request("GET", "/"), timeout=SECONDS)
            await client.aclose()
            with pytest.raises(errors.ConnectionFailed):
                await answer.read()
            with pytest.raises(errors.ConnectionFailed, match="is closed"):
                await client.send(Request("GET", "/"), timeout=SECONDS)

    ground.run(scenario)
