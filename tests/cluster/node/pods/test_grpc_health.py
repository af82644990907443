"""The health protocol of gRPC, against servers that say what they are told to."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.cluster.node.pods.grpc_health import NoHealth, Serving, check

SETTINGS, HEADERS, DATA, RST, PING, GOAWAY = 4, 1, 0, 3, 6, 7
END, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, content: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def header(name: bytes, value: bytes) -> bytes:
    """As it goes over the wire without a table of headers."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


OK = frame(HEADERS, b"\x88", END_HEADERS, 1)
"""`:status 200`, and more to come."""


def failed(status: bytes) -> bytes:
    """A call that ends with its headers."""
    return frame(HEADERS, b"\x88" + header(b"grpc-status", status), END_HEADERS | END, 1)


def message(content: bytes, packed: int = 0) -> bytes:
    return struct.pack(">BI", packed, len(content)) + content


def answer(status: int) -> bytes:
    """As a gRPC server gives it: headers, a message and trailers."""
    content = bytes((0x08, status)) if status else b""
    return (
        frame(SETTINGS, b"\0\3\0\0\0\x64")
        + frame(SETTINGS, b"", ACK)
        + frame(PING, b"12345678")
        + OK
        + frame(DATA, message(content), 0, 1)
        + frame(HEADERS, header(b"grpc-status", b"0"), END_HEADERS | END, 1)
    )


def has_request(heard: bytearray) -> bool:
    """Whether the frame has come that ends the client's stream."""
    at = len(PREFACE)
    while len(heard) >= at + 9:
        kind, flags = heard[at + 3 : at + 5]
        if kind == DATA and flags & END:
            return True
        at += 9 + int.from_bytes(heard[at : at + 3], "big")
    return False


@asynccontextmanager
async def server(says: bytes, heard: bytearray) -> AsyncIterator[int]:
    """Answers when it has the whole question, and closes when it has the acknowledgements."""

    served: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not has_request(heard):
            heard.extend(await reader.read(4096))
        writer.write(says)
        writer.write_eof()
        while piece := await reader.read(4096):
            heard.extend(piece)
        writer.close()
        served.set_result(None)

    made = await asyncio.start_server(serve, "127.0.0.1")
    async with made:
        yield made.sockets[0].getsockname()[1]
        await served


@pytest.mark.parametrize("health", list(Serving))
async def test_a_server_tells_its_health(health: Serving) -> None:
    heard = bytearray()
    async with server(answer(health.value), heard) as port:
        assert await check("127.0.0.1", port, "a.Service") is health
    assert bytes(heard).startswith(PREFACE)
    assert b"\x0a\x09a.Service" in heard


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak HTTP/2"),
        (
            frame(HEADERS, b"\x88", END_HEADERS | END, 1),
            "no HealthCheckResponse, grpc-status missing",
        ),
        (failed(b"5"), "does not know this service"),
        (failed(b"12"), "does not implement the grpc health protocol"),
        (failed(b"14"), "no HealthCheckResponse, grpc-status 14"),
        (frame(RST, b"\0\0\0\1", 0, 1), "refused"),
        (frame(GOAWAY, b"\0" * 8), "refused"),
        (OK + frame(DATA, message(b"\x08\x01", packed=1), END, 1), "not a HealthCheckResponse"),
        (OK + frame(DATA, message(b"\x08\x09"), END, 1), "not a HealthCheckResponse"),
        (OK + frame(DATA, b"\0", END, 1), "not a HealthCheckResponse"),
    ],
)
async def test_a_server_that_does_not_tell(says: bytes, why: str) -> None:
    async with server(says, bytearray()) as port:
        with pytest.raises(NoHealth, match=why):
            await check("127.0.0.1", port, "")


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=60))
def test_any_answer_is_a_health_or_none(says: bytes) -> None:
    async def ask() -> Serving | None:
        async with server(says, bytearray()) as port:
            try:
                return await check("127.0.0.1", port, "")
            except NoHealth:
                return None

    assert asyncio.run(ask()) in (None, *Serving)


async def test_a_long_name_is_asked_for_whole() -> None:
    heard = bytearray()
    async with server(answer(1), heard) as port:
        await check("127.0.0.1", port, "s" * 300)
    assert b"\x0a\xac\x02" + b"s" * 300 in heard
