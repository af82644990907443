"""Container logs: what is written is what is read."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.cluster.node.hosts.logs import STDERR, STDOUT, LogFile, LogQuery


class Times:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.25

    def __call__(self) -> float:
        return self.now


async def read(log: LogFile, query: LogQuery | None = None) -> bytes:
    return b"".join([piece async for piece in log.read(query or LogQuery())])


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def log(tmp_path: Path, times: Times) -> LogFile:
    return LogFile(tmp_path / "0.log", now=times)


async def test_lines_are_kept_in_the_kubelets_format(log: LogFile) -> None:
    log.write(STDOUT, b"one\ntw")
    log.write(STDERR, b"oops\n")
    log.write(STDOUT, b"o\n")
    log.end()
    assert log.path.read_text().splitlines() == [
        "2023-11-14T22:13:20.250000000Z stdout F one",
        "2023-11-14T22:13:20.250000000Z stderr F oops",
        "2023-11-14T22:13:20.250000000Z stdout F two",
    ]
    assert await read(log) == b"one\noops\ntwo\n"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (LogQuery(), b"a\nb\nc\nd\n"),
        (LogQuery(tail=2), b"c\nd\n"),
        (LogQuery(tail=0), b""),
        (LogQuery(tail=9), b"a\nb\nc\nd\n"),
        (LogQuery(limit_bytes=3), b"a\nb"),
        (LogQuery(stream="stderr"), b"c\n"),
        (LogQuery(since=1_700_000_002.0), b"c\nd\n"),
        (LogQuery(since=1_700_000_002.0, tail=1), b"d\n"),
        (LogQuery(tail=1, timestamps=True), b"2023-11-14T22:13:23.250000000Z d\n"),
    ],
)
async def test_a_query_chooses_lines(
    log: LogFile, times: Times, query: LogQuery, expected: bytes
) -> None:
    for line, stream in (("a", STDOUT), ("b", STDOUT), ("c", STDERR), ("d", STDOUT)):
        log.write(stream, f"{line}\n".encode())
        times.now += 1
    log.end()
    assert await read(log, query) == expected


async def test_a_follower_gets_lines_as_they_come_and_ends_with_the_log(log: LogFile) -> None:
    log.write(STDOUT, b"old\n")
    lines = log.read(LogQuery(follow=True))
    assert await anext(lines) == b"old\n"
    waiting = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(0)
    log.write(STDOUT, b"new\n")
    assert await waiting == b"new\n"
    log.end()
    assert [piece async for piece in lines] == []


async def test_a_follower_of_nothing_yet_waits_for_the_first_line(log: LogFile) -> None:
    waiting = asyncio.ensure_future(anext(log.read(LogQuery(follow=True))))
    await asyncio.sleep(0)
    log.write(STDOUT, b"first\n")
    assert await waiting == b"first\n"


async def test_full_files_are_rotated_and_the_oldest_removed(tmp_path: Path, times: Times) -> None:
    log = LogFile(tmp_path / "0.log", now=times, max_bytes=200, max_files=3)
    lines = [f"line {number:03d}\n".encode() for number in range(30)]
    for line in lines:
        log.write(STDOUT, line)
    assert len(log.files()) == 3
    kept = await read(log)
    assert kept == b"".join(lines)[-len(kept) :]
    assert await read(log, LogQuery(tail=6)) == b"".join(lines[-6:])


async def test_a_follower_reads_on_over_a_rotation(tmp_path: Path, times: Times) -> None:
    log = LogFile(tmp_path / "0.log", now=times, max_bytes=120, max_files=3)
    seen: list[bytes] = []

    async def follow() -> None:
        async for piece in log.read(LogQuery(follow=True)):
            seen.append(piece)

    following = asyncio.ensure_future(follow())
    for number in range(12):
        log.write(STDOUT, f"{number}\n".encode())
        await asyncio.sleep(0)
    log.end()
    await following
    assert b"".join(seen).split() == [str(number).encode() for number in range(12)]


async def test_a_tap_hears_what_is_written_from_now_on(log: LogFile) -> None:
    log.write(STDOUT, b"before\n")
    tap = log.tap()
    log.write(STDERR, b"no newline")
    log.end()
    assert await tap.read() == (STDERR, b"no newline")
    assert await tap.read() is None


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=40_000)), max_size=8)
)
def test_each_stream_comes_back_byte_for_byte(pieces: list[tuple[str, bytes]]) -> None:
    async def check(directory: Path) -> None:
        log = LogFile(directory / "0.log", now=lambda: 0.0)
        for stream, data in pieces:
            log.write(stream, data)
        log.end()
        for stream in (STDOUT, STDERR):
            written = b"".join(data for name, data in pieces if name == stream)
            assert await read(log, LogQuery(stream=stream)) == written

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check(Path(directory)))
