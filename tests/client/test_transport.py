"""The contract of every transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kvestigate import errors
from kvestigate.http.message import Headers, Request, Response, Upgrade, WebSocket
from tests.client.scripted import OpenTransport, Script, answer, forever, status, stream


async def test_a_request_arrives_as_it_was_sent(connected: OpenTransport) -> None:
    server = Script(answer({"ok": True}, 201, x_extra="1"))
    transport = await connected(server)
    request = Request("POST", "/api/v1/pods", "a=b%20c", Headers([("X-Mine", "yes")]), b"{}")
    incoming = await transport.send(request, timeout=10)
    assert (incoming.status, incoming.headers.get("x-extra")) == (201, "1")
    assert await incoming.read() == b'{"ok": true}'
    [arrived] = server.requests
    assert (arrived.method, arrived.path, arrived.query) == ("POST", "/api/v1/pods", "a=b%20c")
    assert (arrived.headers.get("x-mine"), arrived.body) == ("yes", b"{}")


@pytest.mark.parametrize(
    "respond",
    [
        lambda: Response(200, body=b"one two"),
        lambda: Response(200, body=[b"one", b" ", b"two"]),
        lambda: stream(b"one ", b"two"),
    ],
    ids=["bytes", "pieces", "stream"],
)
async def test_every_kind_of_body_is_read(
    connected: OpenTransport, respond: Callable[[], Response]
) -> None:
    transport = await connected(Script(respond()))
    incoming = await transport.send(Request("GET", "/"), timeout=10)
    assert b"".join([piece async for piece in incoming]) == b"one two"


async def test_pieces_come_before_the_body_ends(connected: OpenTransport) -> None:
    transport = await connected(Script(stream(b"first\n", then=forever)))
    incoming = await transport.send(Request("GET", "/"), timeout=10)
    assert await anext(aiter(incoming)) == b"first\n"
    await incoming.aclose()


async def test_leaving_a_stream_ends_it_on_the_server(connected: OpenTransport) -> None:
    ended = asyncio.Event()
    transport = await connected(Script(stream(b"first\n", then=forever, ended=ended)))
    incoming = await transport.send(Request("GET", "/"), timeout=10)
    reading = asyncio.ensure_future(incoming.read())
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await incoming.aclose()
    async with asyncio.timeout(10):
        await ended.wait()


async def test_a_body_can_be_too_long(connected: OpenTransport) -> None:
    transport = await connected(Script(stream(b"x" * 100, b"x" * 100)))
    incoming = await transport.send(Request("GET", "/"), timeout=10)
    with pytest.raises(errors.ConnectionFailed, match="longer than 150 bytes"):
        await incoming.read(150)


async def test_a_late_head_is_a_deadline(connected: OpenTransport) -> None:
    async def silent(request: Request) -> Response:
        await forever()
        raise AssertionError

    transport = await connected(silent)
    with pytest.raises(errors.DeadlineExceeded, match="GET /slow"):
        await transport.send(Request("GET", "/slow"), timeout=0.01)


async def test_websockets_carry_messages_both_ways(connected: OpenTransport) -> None:
    async def echo(socket: WebSocket) -> None:
        while (message := await socket.receive()) is not None:
            await socket.send(message)
        finished.set()

    finished = asyncio.Event()
    server = Script(Upgrade(echo, "b"))
    transport = await connected(server)
    socket = await transport.upgrade(Request("GET", "/exec"), ["a", "b"], timeout=10)
    assert socket.subprotocol == "b"
    offered = server.requests[0].headers.get("sec-websocket-protocol")
    assert [word.strip() for word in offered.split(",")] == ["a", "b"]
    for message in (b"\x00bytes", "text"):
        await socket.send(message)
        assert await socket.receive() == message
    await socket.close()
    async with asyncio.timeout(10):
        await finished.wait()
    with pytest.raises(errors.ConnectionFailed):
        await socket.send(b"late")


async def test_what_the_server_sent_before_it_closed_is_still_received(
    connected: OpenTransport,
) -> None:
    async def talk(socket: WebSocket) -> None:
        for number in range(100):
            await socket.send(str(number))

    transport = await connected(Script(Upgrade(talk)))
    socket = await transport.upgrade(Request("GET", "/"), [], timeout=10)
    received = []
    while (message := await socket.receive()) is not None:
        received.append(message)
    assert received == [str(number) for number in range(100)]


async def test_a_refused_websocket_is_the_servers_error(connected: OpenTransport) -> None:
    transport = await connected(Script(status(403, "Forbidden", "not you")))
    with pytest.raises(errors.Forbidden, match="not you"):
        await transport.upgrade(Request("GET", "/exec"), ["a"], timeout=10)


async def test_a_closed_transport_fails(connected: OpenTransport) -> None:
    transport = await connected(Script(answer({})))
    await transport.aclose()
    with pytest.raises(errors.ConnectionFailed, match="closed"):
        await transport.send(Request("GET", "/"), timeout=10)
