"""A task's log across broken connections to the launcher's server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from kvestigate.errors import ConnectionFailed, NotFound
from kvestigate.jobs.identity import User
from kvestigate.jobs.interface import LogRequest
from kvestigate.jobs.remote import Remote
from kvestigate.jobs.resuming import unbroken

Line = bytes | Exception


async def read(connections: Sequence[Sequence[Line]]) -> list[bytes]:
    left = list(connections)

    async def connect() -> AsyncGenerator[bytes, None]:
        for line in left.pop(0):
            if isinstance(line, Exception):
                raise line
            yield line

    return [line async for line in unbroken(connect)]


BROKEN = ConnectionFailed("broken")
A1, A2, B1, B2 = (b"node-%d | %d" % (node, line) for node in (0, 1) for line in (1, 2))


@pytest.mark.parametrize(
    ("connections", "lines"),
    [
        ([[A1, B1, A2]], [A1, B1, A2]),
        ([[A1, BROKEN], [A1, A2]], [A1, A2]),
        ([[A1, B1, BROKEN], [B1, B2, A1, A2]], [A1, B1, B2, A2]),
        ([[b"x", b"x", BROKEN], [b"x", b"x", b"x"]], [b"x", b"x", b"x"]),
        ([[A1, BROKEN], [BROKEN], [A1, BROKEN], [A1, A2]], [A1, A2]),
        ([[A1, BROKEN], [NotFound("gone")]], [A1]),
        ([[]], []),
    ],
)
async def test_no_line_is_lost_or_doubled(
    connections: Sequence[Sequence[Line]], lines: list[bytes]
) -> None:
    assert await read(connections) == lines


@pytest.mark.parametrize("first", [BROKEN, NotFound("no such task")])
async def test_what_never_worked_is_said(first: Exception) -> None:
    with pytest.raises(type(first)):
        await read([[first]])


async def test_a_connection_that_breaks_is_made_anew() -> None:
    answers = [b"1\r\na\r\n1\r\n\n\r\n", b"4\r\na\nb\n\r\n0\r\n\r\n"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + answers.pop(0))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Remote(f"http://127.0.0.1:{port}", User("jane")) as remote:
            lines = [line async for line in remote.logs("abc12345", LogRequest())]
    assert lines == [b"a", b"b"]
