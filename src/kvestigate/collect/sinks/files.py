"""Lines on standard output, and lines in a file that rotates.

Both block for as long as the reader or the disk does, so the writing is done in a thread.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from kvestigate.collect.sinks.interface import Unavailable
from kvestigate.errors import InputError

_BLOCK = 64 * 1024
KEPT = 5
"""Rotated files that are kept: `events.ndjson.1` is the newest."""


class StdoutSink:
    """Standard output. A reader that has gone ends the program, as it does for any filter."""

    name = "stdout"

    async def send(self, lines: Sequence[bytes]) -> None:
        await asyncio.to_thread(self._write, b"\n".join(lines) + b"\n")

    async def aclose(self) -> None:
        pass

    def _write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


class FileSink:
    """Appends to a file. Lines are whole: what a crash has cut off is removed on opening."""

    name = "file"

    def __init__(self, path: Path, *, rotate_size: int = 0, fsync: bool = False) -> None:
        """`rotate_size` in bytes, 0 for never; `fsync` makes lines survive a power failure."""
        self._path = path
        self._rotate_size = rotate_size
        self._fsync = fsync
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO | None = _opened(path)
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}",
                where=str(path),
                hint="give a path in a directory that you may write to",
            ) from error

    async def send(self, lines: Sequence[bytes]) -> None:
        try:
            await asyncio.to_thread(self._write, b"\n".join(lines) + b"\n")
        except OSError as error:
            self._close()
            raise Unavailable(f"{self._path}: {error.strerror}") from error

    async def aclose(self) -> None:
        self._close()

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._file = _opened(self._path)
        size = self._file.tell()
        if self._rotate_size and size and size + len(data) > self._rotate_size:
            self._file = self._rotated(self._file)
        self._file.write(data)
        if self._fsync:
            os.fsync(self._file.fileno())

    def _rotated(self, full: BinaryIO) -> BinaryIO:
        full.close()
        for number in range(KEPT - 1, 0, -1):
            older = self._numbered(number)
            if older.exists():
                older.replace(self._numbered(number + 1))
        self._path.replace(self._numbered(1))
        return _opened(self._path)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _opened(path: Path) -> BinaryIO:
    """At its end, after the last whole line."""
    file = path.open("ab+", buffering=0)
    end = file.seek(0, os.SEEK_END)
    if file.seekable() and end:
        file.truncate(_end_of_lines(file, end))
        file.seek(0, os.SEEK_END)
    return file


def _end_of_lines(file: BinaryIO, end: int) -> int:
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        position = file.read(end - start).rfind(b"\n")
        if position >= 0:
            return start + position + 1
        end = start
    return 0
