"""Applications on a socket: who does not say what they want is not listened to for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kvestigate.http import asgi

PATIENCE = 20.0
HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Patient:
    """An application that answers when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await self.go.wait()
            await send({"type": "websocket.send", "text": "done"})
            return
        await self.go.wait()
        headers = [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"done"})


@asynccontextmanager
async def connected(
    application: Patient,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    listening = asgi.listening_socket("127.0.0.1", 0, "--listen")
    async with asyncio.timeout(PATIENCE), asgi.serving(application, listening):
        reader, writer = await asyncio.open_connection(*listening.getsockname()[:2])
        try:
            yield reader, writer
        finally:
            writer.close()


@pytest.mark.parametrize("said", [b"", b"G", HEAD, HEAD + b"A: "])
async def test_who_never_ends_a_header_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(asgi, "_HEAD_SECONDS", 0.05)
    async with connected(Patient()) as (reader, writer):
        writer.write(said)
        assert await reader.read() == b""


async def test_so_is_who_has_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "_HEAD_SECONDS", 0.05)
    application = Patient()
    application.go.set()
    async with connected(application) as (reader, writer):
        writer.write(HEAD + b"\r\n")
        assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200")
        writer.write(HEAD)
        assert await reader.read() == b""


async def test_a_header_without_end_is_refused() -> None:
    async with connected(Patient()) as (reader, writer):
        writer.write(HEAD + b"A: " + b"a" * (1 << 20))
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("rest", [b"\r\n", UPGRADE], ids=["answer", "WebSocket"])
async def test_who_waits_for_an_answer_may_wait(
    monkeypatch: pytest.MonkeyPatch, rest: bytes
) -> None:
    """The limit passes for a second connection first, which came later."""
    monkeypatch.setattr(asgi, "_HEAD_SECONDS", 0.05)
    application = Patient()
    async with connected(application) as (reader, writer):
        writer.write(HEAD + rest)
        if rest is UPGRADE:
            await reader.readuntil(b"\r\n\r\n")
        late, other = await asyncio.open_connection(*writer.get_extra_info("peername")[:2])
        assert await late.read() == b""
        other.close()
        application.go.set()
        assert b"done" in await reader.readuntil(b"done")
