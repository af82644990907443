"""A task's log across broken connections to the launcher's server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import pytest

from kvestigate.errors import ConnectionFailed, NotFound
from kvestigate.jobs.interface import LogRequest
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.remote.resuming import unbroken
from kvestigate.jobs.users import User

Line = bytes | Exception
REQUEST = LogRequest(tail=5)
BROKEN = ConnectionFailed("broken")


def line(node: int, text: str, second: int = 1, fraction: str = ".5") -> bytes:
    return f"node-{node} | 2026-01-01T00:00:{second:02}{fraction}Z {text}".encode()


async def read(connections: Sequence[Sequence[Line]]) -> tuple[list[bytes], list[LogRequest]]:
    left = list(connections)
    asked = []

    async def connect(request: LogRequest) -> AsyncGenerator[bytes, None]:
        asked.append(request)
        for each in left.pop(0):
            if isinstance(each, Exception):
                raise each
            yield each

    return [each async for each in unbroken(connect, REQUEST)], asked


A1, A2, B1, B2 = (line(node, f"{second}", second) for node in (0, 1) for second in (1, 2))
ALONE = b"2026-01-01T00:00:01.5Z node-7 | x"


@pytest.mark.parametrize(
    ("connections", "lines"),
    [
        ([[A1, B1, A2]], ["node-0 | 1", "node-1 | 1", "node-0 | 2"]),
        ([[A1, BROKEN], [A1, A2]], ["node-0 | 1", "node-0 | 2"]),
        (
            [[A1, B1, BROKEN], [B1, B2, A1, A2]],
            ["node-0 | 1", "node-1 | 1", "node-1 | 2", "node-0 | 2"],
        ),
        ([[ALONE, ALONE, BROKEN], [ALONE, ALONE, ALONE]], ["node-7 | x"] * 3),
        ([[A1, BROKEN], [BROKEN], [A1, BROKEN], [A1, A2]], ["node-0 | 1", "node-0 | 2"]),
        ([[A1, BROKEN], [NotFound("gone")]], ["node-0 | 1"]),
        ([[b"Evicted: why", BROKEN], [b"Evicted: why"]], ["Evicted: why"]),
        ([[]], []),
    ],
)
async def test_no_line_is_lost_or_doubled(
    connections: Sequence[Sequence[Line]], lines: list[str]
) -> None:
    assert (await read(connections))[0] == [each.encode() for each in lines]


async def test_it_is_asked_for_what_comes_after_each_node_alone() -> None:
    _, (first, second) = await read([[A1, B1, A2, BROKEN], []])
    assert first == replace(REQUEST, timestamps=True)
    assert second.after == {0: "2026-01-01T00:00:02Z", 1: "2026-01-01T00:00:01Z"}


@pytest.mark.parametrize("first", [BROKEN, NotFound("no such task")])
async def test_what_never_worked_is_said(first: Exception) -> None:
    with pytest.raises(type(first)):
        await read([[first]])


async def test_a_connection_that_breaks_is_made_anew() -> None:
    a, b = (b"2026-01-01T00:00:01.%dZ %c\n" % (number, 96 + number) for number in (1, 2))
    size = b"%x\r\n" % len(a)
    answers = [size + a + b"\r\n", size + a + b"\r\n" + size + b + b"\r\n0\r\n\r\n"]

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
