"""The server through raw sockets, plain and over TLS: order, limits, slow clients, ends."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from kvestigate.http import tls
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.limits import Limits
from kvestigate.http.message import Handler, Request, Response, Upgrade
from kvestigate.http.server import Server, serve

SECONDS = 10.0
GET = b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n"

NOW = datetime.datetime.now(datetime.UTC)
CA = CertificateAuthority.create("test CA", now=NOW)
PAIR = CA.issue_server("server", ["127.0.0.1"], now=NOW)

Servers = Callable[..., Awaitable[Server]]

PLAIN_ONLY = pytest.mark.parametrize("secure", [False], ids=["plain"], indirect=True)


@pytest.fixture(params=[False, True], ids=["plain", "TLS"])
def secure(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
async def serving(secure: bool) -> AsyncIterator[Servers]:
    servers: list[Server] = []
    context = tls.server_context(certificate=PAIR.certificate, key=PAIR.key) if secure else None

    async def start(handler: Handler, **limits: float) -> Server:
        server = await serve(handler, tls=context, limits=Limits(**limits))  # type: ignore[arg-type]  # ints and floats
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.close(grace=0)


class Raw:
    """A client that sends and expects bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, server: Server, context: ssl.SSLContext | None) -> Raw:
        return cls(*await asyncio.open_connection(*server.address, ssl=context))

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        async with asyncio.timeout(SECONDS):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *fields = head.rstrip("\r\n").split("\r\n")
            headers = dict(field.split(": ", 1) for field in fields)
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(line.split(" ")[1]), headers, body

    async def rest(self) -> bytes:
        async with asyncio.timeout(SECONDS):
            return await self.reader.read()

    async def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        self.writer.write(data)
        return await self.answer()

    def close(self) -> None:
        self.writer.close()


@pytest.fixture
async def raw(secure: bool) -> AsyncIterator[Callable[[Server], Awaitable[Raw]]]:
    opened: list[Raw] = []
    context = tls.client_context(ca=CA.pair.certificate) if secure else None

    async def connect(server: Server) -> Raw:
        client = await Raw.to(server, context)
        opened.append(client)
        return client

    yield connect
    for client in opened:
        client.close()


Raws = Callable[[Server], Awaitable[Raw]]


async def echo(request: Request) -> Response:
    text = f"{request.method} {request.path} {len(request.body)}"
    return Response(200, [("content-type", "text/plain")], text.encode())


async def test_answers_over_a_kept_connection(serving: Servers, raw: Raws) -> None:
    client = await raw(await serving(echo))
    for path in (b"/1", b"/2"):
        status, headers, body = await client.ask(GET % path)
        assert (status, body) == (200, b"GET %b 0" % path)
        assert headers["content-type"] == "text/plain"
        assert "connection" not in headers


async def test_pipelined_requests_are_answered_in_order(serving: Servers, raw: Raws) -> None:
    first = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/0":
            await first.wait()
        else:
            assert first.is_set()
        return await echo(request)

    client = await raw(await serving(handler, pipeline=4))
    client.writer.write(b"".join(GET % (b"/%d" % i) for i in range(50)))
    await client.writer.drain()
    first.set()
    assert [(await client.answer())[2] for _ in range(50)] == [b"GET /%d 0" % i for i in range(50)]


async def test_a_refusal_waits_for_the_answers_before_it(serving: Servers, raw: Raws) -> None:
    client = await raw(await serving(echo))
    client.writer.write(GET % b"/good" + b"nonsense\r\n\r\n")
    assert (await client.answer())[0] == 200
    status, headers, _ = await client.answer()
    assert (status, headers["connection"]) == (400, "close")
    assert await client.rest() == b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 20 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 5000, 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    ],
)
async def test_refusals_end_the_connection(
    request_: bytes, status: int, serving: Servers, raw: Raws
) -> None:
    server = await serving(echo, body_bytes=100, header_bytes=1000, header_count=10, linger=0.01)
    client = await raw(server)
    assert (await client.ask(request_))[0] == status
    assert await client.rest() == b""


async def test_a_refused_client_that_goes_on_sending_is_not_reset(
    serving: Servers, raw: Raws
) -> None:
    # Over TLS the end comes only after all of it: well before the client's own patience ends.
    client = await raw(await serving(echo, body_bytes=100, linger=SECONDS / 4))
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n"
    assert (await client.ask(head))[0] == 413
    for _ in range(64):
        client.writer.write(bytes(65536))
        await client.writer.drain()
    assert await client.rest() == b""


async def test_chunked_request_bodies(serving: Servers, raw: Raws) -> None:
    client = await raw(await serving(echo))
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert (await client.ask(head + b"5\r\nhello\r\n0\r\n\r\n"))[2] == b"POST / 5"


async def test_expect_100_continue(serving: Servers, raw: Raws) -> None:
    client = await raw(await serving(echo))
    head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert (await client.ask(head))[0] == 100
    status, _, body = await client.ask(b"ab")
    assert (status, body) == (200, b"POST / 2")


async def test_a_client_that_does_not_wait_gets_no_100(serving: Servers, raw: Raws) -> None:
    client = await raw(await serving(echo))
    head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert (await client.ask(head + b"ab"))[0] == 200


async def test_no_100_for_a_body_that_is_too_long(serving: Servers, raw: Raws) -> None:
    client = await raw(await serving(echo, body_bytes=1))
    head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert (await client.ask(head))[0] == 413


async def test_head_has_the_length_and_no_body(serving: Servers, raw: Raws) -> None:
    client = await raw(await serving(echo))
    client.writer.write(b"HEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = await client.rest()
    assert b"content-length: 9\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_that_have_no_body(status: int, serving: Servers, raw: Raws) -> None:
    async def handler(request: Request) -> Response:
        return Response(status, body=b"ignored") if request.path == "/none" else await echo(request)

    client = await raw(await serving(handler))
    assert (await client.ask(GET % b"/none"))[0] == status
    assert (await client.ask(GET % b"/next"))[2] == b"GET /next 0"


@pytest.mark.parametrize(
    ("request_", "connection", "ends"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "close", True),
        (b"GET / HTTP/1.0\r\n\r\n", "close", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", False),
    ],
)
async def test_who_closes(
    request_: bytes, connection: str, ends: bool, serving: Servers, raw: Raws
) -> None:
    client = await raw(await serving(echo))
    assert (await client.ask(request_))[1]["connection"] == connection
    if ends:
        assert await client.rest() == b""
    else:
        assert (await client.ask(GET % b"/"))[0] == 200


@PLAIN_ONLY  # TLS knows no half-closed connections
@pytest.mark.parametrize("paths", [[b"/1"], [b"/1", b"/2"]])
async def test_a_half_closed_client_still_gets_its_answers(
    paths: list[bytes], serving: Servers, raw: Raws
) -> None:
    proceed = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path != "/other":
            await proceed.wait()
        return await echo(request)

    server = await serving(handler)
    client, other = await raw(server), await raw(server)
    client.writer.write(b"".join(GET % path for path in paths))
    client.writer.write_eof()
    await client.writer.drain()
    await other.ask(GET % b"/other")  # by then the server knows of the end
    proceed.set()
    answers = [(await client.answer())[2] for _ in paths]
    assert answers == [b"GET %b 0" % path for path in paths]
    assert await client.rest() == b""


@pytest.mark.parametrize(
    ("sent", "timeout", "answer"),
    [
        (b"", "head_timeout", b""),
        (b"GET / HT", "head_timeout", b"HTTP/1.1 408"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: ", "head_timeout", b"HTTP/1.1 408"),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
            "body_timeout",
            b"HTTP/1.1 408",
        ),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "idle_timeout", b"HTTP/1.1 200"),
    ],
    ids=["nothing", "request line", "header", "body", "idle after an answer"],
)
async def test_slow_clients_are_cut_off(
    sent: bytes, timeout: str, answer: bytes, serving: Servers, raw: Raws
) -> None:
    server = await serving(echo, linger=0.01, **{timeout: 0.2})
    client = await raw(server)
    client.writer.write(sent)
    assert (await client.rest()).startswith(answer)


class Nowhere:
    """A sink that keeps nothing."""

    def write(self, piece: bytes) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("over", ["head", "body", "sink"])
async def test_dripping_bytes_does_not_buy_time(over: str, serving: Servers, raw: Raws) -> None:
    sinks = {"sink_of": lambda _: Nowhere()} if over == "sink" else {}
    server = await serving(echo, linger=0.01, head_timeout=0.2, body_timeout=0.2, **sinks)
    client = await raw(server)
    if over != "head":
        client.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n")
    else:
        client.writer.write(b"GET / HTTP/1.1\r\nX: ")

    async def drip() -> None:
        while True:
            client.writer.write(b"x")
            await asyncio.wait([asyncio.shield(answered)], timeout=0.02)

    answered = asyncio.ensure_future(client.answer())
    dripping = asyncio.create_task(drip())
    try:
        assert (await answered)[0] == 408
    finally:
        dripping.cancel()
        await asyncio.wait([dripping])


async def test_a_client_that_does_not_read_is_cut_off(serving: Servers, raw: Raws) -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield bytes(65536)
        finally:
            closed.set()

    async def handler(request: Request) -> Response:
        return Response(200, body=endless())

    client = await raw(await serving(handler, write_timeout=0.1))
    client.writer.write(GET % b"/")
    await asyncio.wait_for(closed.wait(), SECONDS)


async def test_streams_are_chunked_and_the_connection_lives_on(serving: Servers, raw: Raws) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        yield b""
        yield b"x" * 20000

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces()) if request.path == "/s" else await echo(request)

    client = await raw(await serving(handler))
    _, headers, _ = await client.ask(GET % b"/s")
    assert headers["transfer-encoding"] == "chunked"
    expected = b"3\r\none\r\n4e20\r\n" + b"x" * 20000 + b"\r\n0\r\n\r\n"
    assert await client.reader.readexactly(len(expected)) == expected
    assert (await client.ask(GET % b"/next"))[0] == 200


async def test_streams_to_http_1_0_end_with_the_connection(serving: Servers, raw: Raws) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces())

    client = await raw(await serving(handler))
    _, headers, _ = await client.ask(b"GET / HTTP/1.0\r\n\r\n")
    assert "transfer-encoding" not in headers
    assert await client.rest() == b"onetwo"


class Closable:
    """A stream that nobody closes by accident."""

    def __init__(self) -> None:
        self.closed = False

    def __aiter__(self) -> Closable:
        return self

    async def __anext__(self) -> bytes:
        if self.closed:
            raise StopAsyncIteration
        return b"one"

    async def aclose(self) -> None:
        self.closed = True


async def test_a_stream_that_head_does_not_want_is_closed(serving: Servers, raw: Raws) -> None:
    stream = Closable()

    async def handler(request: Request) -> Response:
        return Response(200, body=stream) if request.method == "HEAD" else await echo(request)

    client = await raw(await serving(handler))
    status, headers, _ = await client.ask(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (status, headers["transfer-encoding"]) == (200, "chunked")
    assert (await client.ask(GET % b"/next"))[2] == b"GET /next 0"
    assert stream.closed


@pytest.mark.parametrize("connection", [b"keep-alive", b"close"])
async def test_a_client_that_leaves_closes_its_stream(
    connection: bytes, serving: Servers, raw: Raws
) -> None:
    closed = asyncio.Event()

    async def idle() -> AsyncIterator[bytes]:
        try:
            yield b"one"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def handler(request: Request) -> Response:
        return Response(200, body=idle())

    client = await raw(await serving(handler))
    await client.ask(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: %b\r\n\r\n" % connection)
    client.close()
    await asyncio.wait_for(closed.wait(), SECONDS)


async def test_a_client_that_resets_cancels_the_handler(serving: Servers, raw: Raws) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return await echo(request)

    client = await raw(await serving(handler))
    client.writer.write(GET % b"/")
    await started.wait()
    # Without lingering, closing sends a reset instead of the end of a stream.
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.writer.transport.abort()
    await asyncio.wait_for(cancelled.wait(), SECONDS)


async def test_a_failing_handler_is_a_500_and_a_log_line(
    serving: Servers, raw: Raws, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(request: Request) -> Response | Upgrade:
        match request.path:
            case "/raise":
                raise RuntimeError("secret")
            case "/cancel":
                raise asyncio.CancelledError
            case "/field":
                return Response(200, [("x", "a\r\nb: c")])
            case "/pieces":
                return Response(200, body=["text"])  # type: ignore[list-item]  # the mistake
            case "/none":
                return None  # type: ignore[return-value]  # the mistake
        return await echo(request)

    client = await raw(await serving(handler))
    with caplog.at_level(logging.ERROR):
        for path in (b"/raise", b"/cancel", b"/field", b"/pieces", b"/none"):
            status, _, body = await client.ask(GET % path)
            assert (status, b"secret" in body) == (500, False)
    assert len(caplog.records) == 5
    assert (await client.ask(GET % b"/fine"))[0] == 200


async def test_a_failing_stream_is_cut_so_that_it_cannot_pass_for_whole(
    serving: Servers, raw: Raws, caplog: pytest.LogCaptureFixture
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        raise RuntimeError("broken")

    async def handler(request: Request) -> Response:
        return Response(200, body=pieces())

    client = await raw(await serving(handler))
    client.writer.write(GET % b"/")
    try:
        received = await client.rest()
    except ConnectionResetError:
        received = b""
    assert not received.endswith(b"0\r\n\r\n")
    assert "broken" in caplog.text


@pytest.mark.parametrize(
    ("accept", "compress", "size", "zipped"),
    [
        ("gzip", True, 1000, True),
        ("br;q=1, GZIP;q=0.5", True, 1000, True),
        ("*", True, 1000, True),
        ("gzip;q=0", True, 1000, False),
        ("gzip; q=0.000", True, 1000, False),
        ("identity", True, 1000, False),
        ("gzip", False, 1000, False),
        ("gzip", True, 999, False),
    ],
)
async def test_large_bodies_are_gzipped_for_who_accepts_it(
    accept: str, compress: bool, size: int, zipped: bool, serving: Servers, raw: Raws
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, body=[b"x" * (size - 1), b"y"], compress=compress)

    client = await raw(await serving(handler, gzip_min=1000))
    request = f"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accept}\r\n\r\n"
    _, headers, body = await client.ask(request.encode())
    assert (headers.get("content-encoding") == "gzip") == zipped
    assert (gzip.decompress(body) if zipped else body) == b"x" * (size - 1) + b"y"


async def test_close_finishes_answers_ends_streams_and_refuses_newcomers(
    serving: Servers, raw: Raws
) -> None:
    started, proceed = asyncio.Event(), asyncio.Event()

    async def idle() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.Event().wait()

    async def handler(request: Request) -> Response:
        if request.path == "/stream":
            return Response(200, body=idle())
        if request.path == "/slow":
            started.set()
            await proceed.wait()
        return await echo(request)

    server = await serving(handler)
    waiting, slow, stream = [await raw(server) for _ in range(3)]
    await waiting.ask(GET % b"/")
    await stream.ask(GET % b"/stream")
    assert await stream.reader.readexactly(8) == b"3\r\none\r\n"
    slow.writer.write(GET % b"/slow")
    await started.wait()

    address = server.address
    closing = asyncio.create_task(server.close(grace=SECONDS))
    assert await waiting.rest() == b""
    assert await stream.rest() == b"0\r\n\r\n"
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)
    assert not closing.done()
    proceed.set()
    assert (await slow.answer())[1]["connection"] == "close"
    await closing


async def test_close_cuts_off_what_outlasts_the_grace(serving: Servers, raw: Raws) -> None:
    started = asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        await asyncio.Event().wait()
        return await echo(request)

    server = await serving(handler)
    client = await raw(server)
    client.writer.write(GET % b"/")
    await started.wait()
    await server.close(grace=0.01)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
        await client.answer()
