"""The client against servers that answer oddly, slowly or not at all."""

from __future__ import annotations

import asyncio
import gzip
import socket

import pytest

from kvestigate import errors
from kvestigate.http.message import Headers, Request
from kvestigate.http.pool import UpgradeRefused
from tests.http.peers import Clients, RawServers, answering, request_head

SECONDS = 10.0


def chunked(*pieces: bytes, extension: bytes = b"") -> bytes:
    framed = [b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces]
    return (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(framed) + b"0\r\n\r\n"
    )


def sized(body: bytes, *fields: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"".join(b"%b\r\n" % field for field in fields)
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, head, len(body), body)


ZIPPED = gzip.compress(b"hello " * 1000)

ANSWERS = {
    "content length": (sized(b"hello"), 200, b"hello"),
    "empty": (sized(b""), 200, b""),
    "chunked": (chunked(b"he", b"llo"), 200, b"hello"),
    "chunk extensions": (chunked(b"he", b"llo", extension=b";a=b;c"), 200, b"hello"),
    "until close": (b"HTTP/1.1 200 OK\r\n\r\nhello", 200, b"hello"),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nhello", 200, b"hello"),
    "no reason phrase": (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    "interim answers": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + sized(b"x"),
        200,
        b"x",
    ),
    "gzip": (sized(ZIPPED, b"Content-Encoding: gzip"), 200, b"hello " * 1000),
    "gzip members": (
        sized(gzip.compress(b"he") + gzip.compress(b"llo"), b"Content-Encoding: gzip"),
        200,
        b"hello",
    ),
    "gzip of nothing": (sized(b"", b"Content-Encoding: gzip"), 200, b""),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "304 with a length": (b"HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\n", 304, b""),
    "error status": (sized(b"no", status=b"404 Not Found"), 404, b"no"),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_reads_every_kind_of_answer(
    name: str, raw_server: RawServers, client_of: Clients
) -> None:
    answer, status, body = ANSWERS[name]
    server = await raw_server(answering(answer))
    incoming = await client_of(server.port).send(Request("GET", "/"), timeout=SECONDS)
    assert incoming.status == status
    assert await incoming.read() == body


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_in_single_bytes_is_the_same_answer(
    name: str, raw_server: RawServers, client_of: Clients
) -> None:
    answer, status, body = ANSWERS[name]

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        for byte in answer:
            writer.write(bytes((byte,)))
            await writer.drain()

    server = await raw_server(script)
    incoming = await client_of(server.port).send(Request("GET", "/"), timeout=SECONDS)
    assert incoming.status == status
    assert b"".join([piece async for piece in incoming]) == body


BROKEN = {
    "truncated length": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
    "truncated chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "truncated gzip": sized(ZIPPED[:-20], b"Content-Encoding: gzip"),
    "not gzip": sized(b"hello", b"Content-Encoding: gzip"),
    "bad chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_body_is_an_error_not_a_short_body(
    name: str, raw_server: RawServers, client_of: Clients
) -> None:
    server = await raw_server(answering(BROKEN[name]))
    with pytest.raises(errors.ConnectionFailed):
        await (await client_of(server.port).send(Request("GET", "/"), timeout=SECONDS)).read()


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000],
    ids=["nothing", "other protocol", "endless header"],
)
async def test_no_answer_is_an_error_that_names_the_server(
    answer: bytes, raw_server: RawServers, client_of: Clients
) -> None:
    server = await raw_server(answering(answer))
    with pytest.raises(errors.ConnectionFailed, match=f"127.0.0.1:{server.port}"):
        await client_of(server.port).send(Request("GET", "/"), timeout=SECONDS)


async def test_connections_are_reused_after_a_body_was_read(
    raw_server: RawServers, client_of: Clients
) -> None:
    server = await raw_server(answering(sized(b"a"), chunked(b"b"), sized(b"c")))
    client = client_of(server.port)
    bodies = [
        await (await client.send(Request("GET", "/"), timeout=SECONDS)).read() for _ in range(3)
    ]
    assert bodies == [b"a", b"b", b"c"]
    assert server.connections == 1


async def test_head_has_a_length_but_no_body_and_keeps_the_connection(
    raw_server: RawServers, client_of: Clients
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    server = await raw_server(answering(head, sized(b"next")))
    client = client_of(server.port)
    first = await client.send(Request("HEAD", "/"), timeout=SECONDS)
    assert (first.headers.get("content-length"), await first.read()) == ("100", b"")
    assert await (await client.send(Request("GET", "/"), timeout=SECONDS)).read() == b"next"
    assert server.connections == 1


async def test_connection_close_is_honoured(raw_server: RawServers, client_of: Clients) -> None:
    server = await raw_server(answering(sized(b"a", b"Connection: close")))
    client = client_of(server.port)
    for _ in range(2):
        await (await client.send(Request("GET", "/"), timeout=SECONDS)).read()
    assert server.connections == 2


async def test_a_body_given_up_closes_its_socket(
    raw_server: RawServers, client_of: Clients
) -> None:
    gone = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        try:
            await reader.read()
        finally:
            gone.set()

    server = await raw_server(script)
    incoming = await client_of(server.port).send(Request("GET", "/"), timeout=SECONDS)
    await incoming.aclose()
    await asyncio.wait_for(gone.wait(), SECONDS)


@pytest.mark.parametrize("where", ["head", "body"])
async def test_cancellation_closes_the_socket(
    where: str, raw_server: RawServers, client_of: Clients
) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        if where == "body":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        asked.set()
        try:
            await reader.read()
        finally:
            gone.set()

    server = await raw_server(script)
    client = client_of(server.port)
    headed = asyncio.Event()

    async def fetch() -> None:
        incoming = await client.send(Request("GET", "/"), timeout=None)
        headed.set()
        await incoming.read()

    task = asyncio.create_task(fetch())
    await asked.wait()
    if where == "body":
        await headed.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(gone.wait(), SECONDS)


@pytest.mark.parametrize(("method", "retried"), [("GET", True), ("HEAD", True), ("POST", False)])
async def test_a_stale_connection_is_retried_only_if_replay_is_harmless(
    method: str, retried: bool, raw_server: RawServers, client_of: Clients
) -> None:
    """The server closes the kept connection upon its second request, without an answer."""
    answers = iter([sized(b""), b"", sized(b"")])

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_head(reader)
            answer = next(answers)
            if not answer:
                return
            writer.write(answer)

    server = await raw_server(script)
    client = client_of(server.port)
    await (await client.send(Request("GET", "/"), timeout=SECONDS)).read()
    if retried:
        assert (await client.send(Request(method, "/"), timeout=SECONDS)).status == 200
    else:
        with pytest.raises(errors.ConnectionFailed, match="without an answer"):
            await client.send(Request(method, "/"), timeout=SECONDS)
    assert server.connections == 1 + retried


async def test_waiting_for_the_head_is_bounded(raw_server: RawServers, client_of: Clients) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server = await raw_server(script)
    with pytest.raises(errors.DeadlineExceeded, match=r"GET /slow within 0\.05 s"):
        await client_of(server.port).send(Request("GET", "/slow"), timeout=0.05)


async def test_waiting_for_the_next_piece_is_bounded(
    raw_server: RawServers, client_of: Clients
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        await reader.read()

    server = await raw_server(script)
    client = client_of(server.port)
    incoming = await client.send(Request("GET", "/"), timeout=SECONDS, read_timeout=0.05)
    with pytest.raises(errors.DeadlineExceeded):
        await incoming.read()


async def test_a_body_over_the_readers_limit_is_an_error(
    raw_server: RawServers, client_of: Clients
) -> None:
    server = await raw_server(answering(sized(b"hello")))
    incoming = await client_of(server.port).send(Request("GET", "/"), timeout=SECONDS)
    with pytest.raises(errors.ConnectionFailed, match="longer than 4 bytes"):
        await incoming.read(limit=4)


async def test_an_unread_body_stops_the_server_from_sending_more(
    raw_server: RawServers, client_of: Clients
) -> None:
    total = 64 * 1024 * 1024
    written = 0
    stuck = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await request_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        while written < total:
            writer.write(bytes(65536))
            written += 65536
            drained = asyncio.ensure_future(writer.drain())
            done, _ = await asyncio.wait([drained], timeout=0.2)
            if not done:
                stuck.set()
            await drained

    server = await raw_server(script)
    incoming = await client_of(server.port).send(Request("GET", "/"), timeout=SECONDS)
    await asyncio.wait_for(stuck.wait(), SECONDS)
    assert written < total // 2
    assert len(await incoming.read()) == total


async def test_refused_connections_say_where_and_what_to_check(client_of: Clients) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(errors.ConnectionFailed, match=f"127.0.0.1:{port} refused") as caught:
            await client_of(port).send(Request("GET", "/"), timeout=SECONDS)
    assert caught.value.hint


async def test_what_is_sent(raw_server: RawServers, client_of: Clients) -> None:
    heads: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await request_head(reader)
        heads.append(head + await reader.readexactly(2))
        writer.write(sized(b""))

    server = await raw_server(script)
    request = Request("POST", "/a%20b", "x=1", Headers([("X-Y", "z")]), b"{}")
    await (await client_of(server.port).send(request, timeout=SECONDS)).read()
    assert heads == [
        b"POST /a%%20b?x=1 HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nx-y: z\r\n"
        b"accept-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}" % server.port
    ]


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", "/a b"),
        Request("GET", "/ä"),
        Request("GET", "/a\r\nX: y"),
        Request("GET", "/", "a\nb"),
        Request("GET", "/", headers=Headers([("x", "a\r\nb: c")])),
        Request("GET", "/", headers=Headers([("x", "a\0")])),
        Request("GET", "/", headers=Headers([("x", "€")])),
    ],
    ids=repr,
)
async def test_requests_that_would_smuggle_are_refused(
    request_: Request, client_of: Clients
) -> None:
    with pytest.raises(errors.InputError):
        await client_of(1).send(request_, timeout=SECONDS)


async def test_a_refused_upgrade_carries_the_answer(
    raw_server: RawServers, client_of: Clients
) -> None:
    server = await raw_server(answering(sized(b"no pods", status=b"403 Forbidden")))
    with pytest.raises(UpgradeRefused) as caught:
        await client_of(server.port).upgrade(Request("GET", "/exec"), ["v5"], timeout=SECONDS)
    assert (caught.value.status, caught.value.body) == (403, b"no pods")


@pytest.mark.parametrize(
    "fields",
    [
        b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: wrong\r\n",
        b"Upgrade: other\r\nConnection: Upgrade\r\n",
    ],
)
async def test_a_wrong_upgrade_handshake_is_an_error(
    fields: bytes, raw_server: RawServers, client_of: Clients
) -> None:
    answer = b"HTTP/1.1 101 Switching Protocols\r\n" + fields + b"\r\n"
    server = await raw_server(answering(answer))
    with pytest.raises(errors.ConnectionFailed, match="wrong handshake"):
        await client_of(server.port).upgrade(Request("GET", "/"), timeout=SECONDS)
