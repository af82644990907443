"""WebSockets between our client and our server, and against peers that break the rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from websockets.frames import BINARY, CLOSE, CONT, PING, PONG, TEXT, Frame
from websockets.server import ServerProtocol

from kvestigate import errors
from kvestigate.http.limits import Limits
from kvestigate.http.message import Request, Response, Upgrade, WebSocket
from kvestigate.http.pool import HttpClient, UpgradeRefused
from kvestigate.http.server import serve
from kvestigate.http.websocket import WebSocketConnection
from tests.http.peers import Clients, RawServers

SECONDS = 10.0

Run = Callable[[WebSocket], Awaitable[None]]
Opener = Callable[..., Awaitable[WebSocketConnection]]


@pytest.fixture
async def opened() -> AsyncIterator[Opener]:
    """The client's end of a WebSocket whose server runs the given function."""
    async with _Stack() as stack:

        async def open_(
            run: Run, subprotocols: tuple[str, ...] = ("b", "a"), **limits: Any
        ) -> WebSocketConnection:
            async def handler(request: Request) -> Response | Upgrade:
                return Upgrade(run, subprotocol="a" if "a" in subprotocols else None)

            server = await serve(handler, limits=Limits(**limits))
            host, port = server.address
            client = HttpClient(host=host, port=port)
            stack.closers += [client.aclose, lambda: server.close(grace=0)]
            channel = await client.upgrade(Request("GET", "/ws"), subprotocols, timeout=SECONDS)
            assert isinstance(channel, WebSocketConnection)
            stack.closers.insert(0, channel.close)
            return channel

        yield open_


class _Stack:
    def __init__(self) -> None:
        self.closers: list[Callable[[], Awaitable[None]]] = []

    async def __aenter__(self) -> _Stack:
        return self

    async def __aexit__(self, *_: object) -> None:
        for close in self.closers:
            await close()


async def echo(channel: WebSocket) -> None:
    while (message := await channel.receive()) is not None:
        await channel.send(message)


@pytest.mark.parametrize(
    "message", [b"", b"\x00\x01", "text", "ünïcode", b"x" * 70_000, b"y" * 3_000_000]
)
async def test_messages_keep_their_bounds_and_kind(message: bytes | str, opened: Opener) -> None:
    channel = await opened(echo)
    await channel.send(message)
    await channel.send(b"next")
    assert await channel.receive() == message
    assert await channel.receive() == b"next"


@pytest.mark.parametrize(("offered", "agreed"), [(("b", "a"), "a"), ((), None)])
async def test_subprotocols(offered: tuple[str, ...], agreed: str | None, opened: Opener) -> None:
    async def tell(channel: WebSocket) -> None:
        await channel.send(str(channel.subprotocol))

    channel = await opened(tell, offered)
    assert channel.subprotocol == agreed
    assert await channel.receive() == str(agreed)


async def test_the_end_of_the_servers_function_closes(opened: Opener) -> None:
    async def bye(channel: WebSocket) -> None:
        await channel.send(b"last")

    channel = await opened(bye)
    assert await channel.receive() == b"last"
    assert await channel.receive() is None
    assert channel.close_code == 1000
    with pytest.raises(errors.ConnectionFailed, match="closed"):
        await channel.send(b"too late")


async def test_a_failing_function_closes_with_1011(
    opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(channel: WebSocket) -> None:
        raise RuntimeError("broken")

    channel = await opened(fail)
    assert await channel.receive() is None
    assert channel.close_code == 1011
    assert "broken" in caplog.text


async def test_the_clients_close_reaches_the_server(opened: Opener) -> None:
    ended: asyncio.Future[bytes | str | None] = asyncio.get_running_loop().create_future()

    async def wait(channel: WebSocket) -> None:
        ended.set_result(await channel.receive())

    channel = await opened(wait)
    await channel.close(1001, "done here")
    assert await asyncio.wait_for(ended, SECONDS) is None


async def test_a_message_over_the_limit_closes_with_1009(opened: Opener) -> None:
    channel = await opened(echo, websocket_message=1000)
    await channel.send(bytes(1001))
    assert await channel.receive() is None
    assert channel.close_code == 1009


async def test_a_slow_receiver_slows_the_sender_down(opened: Opener) -> None:
    sent = 0
    finished = asyncio.Event()

    async def pour(channel: WebSocket) -> None:
        nonlocal sent
        for _ in range(1000):
            await channel.send(bytes(65536))
            sent += 1
        finished.set()

    channel = await opened(pour)
    first = await channel.receive()
    assert first is not None
    waiting = asyncio.create_task(finished.wait())
    before = -1
    while sent != before and not finished.is_set():
        before = sent
        await asyncio.wait([waiting], timeout=0.3)
    assert sent < 900
    received = 1
    while await channel.receive() is not None:
        received += 1
    assert received == 1000
    assert await waiting


async def test_the_servers_close_says_going_away() -> None:
    async def handler(request: Request) -> Upgrade:
        return Upgrade(echo)

    server = await serve(handler)
    host, port = server.address
    async with HttpClient(host=host, port=port) as client:
        channel = await client.upgrade(Request("GET", "/"), timeout=SECONDS)
        assert isinstance(channel, WebSocketConnection)
        closing = asyncio.create_task(server.close(grace=SECONDS))
        assert await channel.receive() is None
        assert channel.close_code == 1001
        await channel.close()
        await closing


async def test_a_plain_answer_to_an_upgrade_is_a_refusal() -> None:
    async def handler(request: Request) -> Response:
        return Response(403, body=b"not you")

    async with await serve(handler) as server:
        host, port = server.address
        async with HttpClient(host=host, port=port) as client:
            with pytest.raises(UpgradeRefused) as caught:
                await client.upgrade(Request("GET", "/"), timeout=SECONDS)
    assert (caught.value.status, caught.value.body) == (403, b"not you")


@pytest.mark.parametrize(
    "fields",
    [
        b"",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: AAAA\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: !\r\n",
    ],
    ids=["no upgrade", "version", "no key", "short key", "not base64"],
)
async def test_requests_that_are_no_websocket_handshake_get_400(fields: bytes) -> None:
    async def handler(request: Request) -> Upgrade:
        return Upgrade(echo)

    async with await serve(handler) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 400")
        writer.close()


# Peers that break the rules: a raw server that sends the given frames after a good handshake.


def sending(*frames: Frame, then_wait: bool = False) -> Callable[..., Awaitable[None]]:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = ServerProtocol()
        protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
        [request] = protocol.events_received()
        protocol.send_response(protocol.accept(request))  # type: ignore[arg-type]  # the only event
        answer = b"".join(protocol.data_to_send())
        # In one segment: what follows the handshake at once must not be lost.
        writer.write(answer + b"".join(f.serialize(mask=False) for f in frames))
        if then_wait:
            await reader.read()

    return script


async def test_a_ping_is_answered(raw_server: RawServers, client_of: Clients) -> None:
    pong: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await sending(Frame(PING, b"?"))(reader, writer)
        pong.set_result(await reader.readexactly(1))

    server = await raw_server(script)
    await client_of(server.port).upgrade(Request("GET", "/"), timeout=SECONDS)
    assert await asyncio.wait_for(pong, SECONDS) == bytes([0x80 | PONG])


async def test_fragments_are_one_message_with_pings_in_between(
    raw_server: RawServers, client_of: Clients
) -> None:
    frames = [
        Frame(TEXT, b"he", fin=False),
        Frame(PING, b"?"),
        Frame(CONT, b"", fin=False),
        Frame(CONT, b"llo"),
        Frame(BINARY, b"x"),
    ]
    server = await raw_server(sending(*frames, then_wait=True))
    channel = await client_of(server.port).upgrade(Request("GET", "/"), timeout=SECONDS)
    assert [await channel.receive(), await channel.receive()] == ["hello", b"x"]


async def test_messages_that_come_with_the_peers_close_are_received(
    raw_server: RawServers, client_of: Clients
) -> None:
    close = Frame(CLOSE, (1000).to_bytes(2, "big"))
    server = await raw_server(sending(Frame(BINARY, b"last"), close, then_wait=True))
    channel = await client_of(server.port).upgrade(Request("GET", "/"), timeout=SECONDS)
    assert [await channel.receive(), await channel.receive()] == [b"last", None]


@pytest.mark.parametrize(
    "frames",
    [
        (),
        (Frame(TEXT, b"he", fin=False),),
        (Frame(CONT, b"he"),),
        (Frame(TEXT, b"\xff"),),
    ],
    ids=["end without a close frame", "end inside a message", "stray fragment", "not UTF-8"],
)
async def test_a_broken_websocket_is_an_error_not_an_end(
    frames: tuple[Frame, ...], raw_server: RawServers, client_of: Clients
) -> None:
    server = await raw_server(sending(*frames))
    channel = await client_of(server.port).upgrade(Request("GET", "/"), timeout=SECONDS)
    with pytest.raises(errors.ConnectionFailed, match="WebSocket"):
        await channel.receive()


async def test_close_does_not_wait_forever_for_a_silent_peer(
    raw_server: RawServers, client_of: Clients
) -> None:
    server = await raw_server(sending(then_wait=True))
    channel = await client_of(server.port).upgrade(Request("GET", "/"), timeout=SECONDS)
    assert isinstance(channel, WebSocketConnection)
    channel.close_timeout = 0.05
    await asyncio.wait_for(channel.close(), SECONDS)
    assert channel.close_code == 1006
