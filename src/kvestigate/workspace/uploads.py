"""Files that somebody sends: in memory while they are small, on disk when they are not."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import IO, ParamSpec, TypeVar, cast

from kvestigate.kube import pauses

P = ParamSpec("P")
T = TypeVar("T")

_IN_MEMORY = 256 << 10

_THREADS = ThreadPoolExecutor(2, thread_name_prefix="files")
"""For reading, checking and packing files: however many are sent, the loop's own threads, which
look up names and do what else may not wait, stay free."""


async def in_background(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something with files while others go on; a few at a time, the others wait."""
    work = partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, _paced, work)


def _paced(work: Callable[[], T]) -> T:
    with pauses.paced():
        return work()


class Upload:
    """What has come so far. Whoever made it closes it; nobody else can open it by a name."""

    def __init__(self, data: bytes = b"") -> None:
        self._file: tempfile.SpooledTemporaryFile[bytes] | None = None
        self.size = 0
        if data:
            self.write(data)

    def write(self, piece: bytes) -> None:
        """OSError if there is no room for it."""
        self.size += len(piece)  # of what does not fit, too: some of it may be on disk
        self._opened().write(piece)

    def opened(self) -> IO[bytes]:
        """What has come, from its beginning; not to be closed, and one reader at a time."""
        file = self._opened()
        file.seek(0)
        return cast("IO[bytes]", file)

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # what it could not write before, it tries again
                self._file.close()

    def _opened(self) -> tempfile.SpooledTemporaryFile[bytes]:
        """The file, made when it is first needed."""
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115  closed by `close`
                _IN_MEMORY, dir=_directory()
            )
        return self._file


def _directory() -> str | None:
    """`/tmp` is memory on many machines, and then nothing would be won."""
    chosen = os.environ.get("TMPDIR")
    return None if chosen or not os.access("/var/tmp", os.W_OK) else "/var/tmp"
