"""Container logs in the kubelet's format on disk, and reading them back.

A line is `2006-01-02T15:04:05.000000000Z stdout F text`; a line longer than the buffer is split
into parts marked `P`. A full file is renamed to `N.log.1` and so on; the oldest is removed.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

STDOUT = "stdout"
STDERR = "stderr"

LONGEST_PART = 16 * 1024
MAX_BYTES = 10 * 1024 * 1024
MAX_FILES = 5
_CHUNK = 64 * 1024
_TAP_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines of a log are read, and in which form."""

    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: float | None = None
    """Seconds since the epoch."""
    limit_bytes: int | None = None
    stream: str = ""
    """`stdout` or `stderr` alone."""


class Log(Protocol):
    """One run's output."""

    def read(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """Lines with their newlines, in pieces."""

    def tap(self) -> Tap:
        """What is written from now on, as it was written."""

    def last(self, lines: int, most: int) -> bytes:
        """The last lines there are, and of them the last `most` bytes."""


class Tap:
    """Live output for one reader; a reader that falls far behind loses the oldest."""

    def __init__(self, release: Callable[[Tap], None]) -> None:
        self._pieces: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        self._release = release

    def put(self, stream: str, data: bytes) -> None:
        self._pieces.append((stream, data))
        self._bytes += len(data)
        while self._bytes > _TAP_BYTES and len(self._pieces) > 1:
            self._bytes -= len(self._pieces.popleft()[1])
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    async def read(self) -> tuple[str, bytes] | None:
        while not self._pieces:
            if self._ended:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        piece = self._pieces.popleft()
        self._bytes -= len(piece[1])
        return piece

    def close(self) -> None:
        self._release(self)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class LogFile:
    """The log of one run: written by one, read by many."""

    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], float],
        max_bytes: int = MAX_BYTES,
        max_files: int = MAX_FILES,
    ) -> None:
        self.path = path
        self._now = now
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._partial: dict[str, bytearray] = {}
        self._file: int | None = None
        self._size = 0
        self._ended = False
        self._taps: list[Tap] = []
        self._followers: set[asyncio.Future[None]] = set()

    # Writing.

    def write(self, stream: str, data: bytes) -> None:
        """Append output as it came; a line is written when it is whole."""
        for tap in self._taps:
            tap.put(stream, data)
        held = self._partial.setdefault(stream, bytearray())
        held += data
        end = held.rfind(b"\n")
        head = f"{timestamp(self._now())} {stream} ".encode()
        lines: list[bytes] = []
        if end >= 0:
            for line in bytes(held[:end]).split(b"\n"):
                lines += _parts(head, line, last=b"F")
            del held[: end + 1]
        while len(held) > LONGEST_PART:
            lines += [head, b"P ", bytes(held[:LONGEST_PART]), b"\n"]
            del held[:LONGEST_PART]
        if lines:
            self._append(b"".join(lines))

    def end(self) -> None:
        """Nothing more will come."""
        for stream, held in self._partial.items():
            if held:
                head = f"{timestamp(self._now())} {stream} ".encode()
                self._append(b"".join(_parts(head, bytes(held), last=b"P")))
        self._partial.clear()
        self._ended = True
        if self._file is not None:
            os.close(self._file)
            self._file = None
        for tap in list(self._taps):
            tap.end()
        self._wake()

    def tap(self) -> Tap:
        tap = Tap(self._taps.remove)
        self._taps.append(tap)
        if self._ended:
            tap.end()
        return tap

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._open()
        elif self._size + len(data) > self._max_bytes and self._size:
            self._rotate()
        assert self._file is not None
        os.write(self._file, data)
        self._size += len(data)
        self._wake()

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self.path, flags, 0o640)
        self._size = os.fstat(self._file).st_size

    def _rotate(self) -> None:
        assert self._file is not None
        os.close(self._file)
        self._old(self._max_files - 1).unlink(missing_ok=True)
        for age in range(self._max_files - 2, 0, -1):
            if self._old(age).exists():
                self._old(age).rename(self._old(age + 1))
        self.path.rename(self._old(1))
        self._open()

    def _old(self, age: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{age}")

    # Reading.

    async def read(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        room = query.limit_bytes
        async for data in self._selected(query):
            if room is not None:
                data = data[:room]
                room -= len(data)
            if data:
                yield data
            if room == 0:
                return

    def last(self, lines: int, most: int) -> bytes:
        reader = _Reader(self)
        try:
            pieces = _last_lines(reader.pieces(), lines)
            shown = [line for piece in pieces for line in _shown(piece, LogQuery(), b"")]
        finally:
            reader.close()
        return b"".join(shown)[-most:]

    async def _selected(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        since = timestamp(query.since).encode() if query.since is not None else b""
        reader = _Reader(self)
        pieces = reader.pieces()
        if query.tail is not None:
            pieces = _last_lines(pieces, query.tail)
        try:
            while True:
                for lines in pieces:
                    text = b"".join(_shown(lines, query, since))
                    if text:
                        yield text
                if self._ended or not query.follow:
                    return
                await self._written(reader)
                pieces = reader.pieces()
        finally:
            reader.close()

    async def _written(self, reader: _Reader) -> None:
        if reader.behind():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers.add(waiter)
        try:
            await waiter
        finally:
            self._followers.discard(waiter)

    def _wake(self) -> None:
        for waiter in self._followers:
            if not waiter.done():
                waiter.set_result(None)

    def files(self) -> list[Path]:
        """Oldest first."""
        old = [self._old(age) for age in range(self._max_files - 1, 0, -1)]
        return [path for path in (*old, self.path) if path.exists()]


class _Reader:
    """Reads on from where it stopped, over renamed files."""

    def __init__(self, log: LogFile) -> None:
        self._path = log.path
        self._rest = b""
        # All are opened now: a rotation while they are read renames them.
        self._open = deque(os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in log.files())

    def pieces(self) -> Iterator[bytes]:
        """Whole lines that are there now."""
        while self._open or self._reopen():
            data = os.read(self._open[0], _CHUNK)
            if not data:
                if not self._left():
                    return
                os.close(self._open.popleft())
                continue
            end = data.rfind(b"\n") + 1
            if end:
                yield self._rest + data[:end]
                self._rest = data[end:]
            else:
                self._rest += data

    def behind(self) -> bool:
        """Whether there is more to read without waiting."""
        if not self._open:
            return self._path.exists()
        here = self._open[0]
        return os.lseek(here, 0, os.SEEK_CUR) < os.fstat(here).st_size or self._left()

    def close(self) -> None:
        while self._open:
            os.close(self._open.popleft())

    def _reopen(self) -> bool:
        if not self._path.exists():
            return False
        self._open.append(os.open(self._path, os.O_RDONLY | os.O_CLOEXEC))
        return True

    def _left(self) -> bool:
        """Whether the file in hand is no longer the one that is written."""
        if len(self._open) > 1:
            return True
        try:
            return os.fstat(self._open[0]).st_ino != self._path.stat().st_ino
        except FileNotFoundError:
            return False


def _last_lines(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    lines = (line for piece in pieces for line in piece.split(b"\n")[:-1])
    yield b"".join(line + b"\n" for line in deque(lines, maxlen=count))


def _shown(lines: bytes, query: LogQuery, since: bytes) -> Iterator[bytes]:
    """The lines as the reader wants them."""
    wanted = query.stream.encode()
    for line in lines.split(b"\n")[:-1]:
        stamped, _, rest = line.partition(b" ")
        if since and stamped < since:
            continue
        stream, _, rest = rest.partition(b" ")
        if wanted and stream != wanted:
            continue
        tag, _, text = rest.partition(b" ")
        if tag != b"P":
            text += b"\n"
        yield stamped + b" " + text if query.timestamps else text


def _parts(head: bytes, line: bytes, *, last: bytes) -> list[bytes]:
    pieces: list[bytes] = []
    while len(line) > LONGEST_PART:
        pieces += [head, b"P ", line[:LONGEST_PART], b"\n"]
        line = line[LONGEST_PART:]
    return [*pieces, head, last, b" ", line, b"\n"]


def timestamp(seconds: float) -> str:
    """`2006-01-02T15:04:05.000000000Z`, of a length so that it sorts as text."""
    whole = int(seconds)
    nanos = int((seconds - whole) * 1_000_000_000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"
