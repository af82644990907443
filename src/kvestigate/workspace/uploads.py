"""Files that somebody sends: in memory while they are small, on disk when they are not."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import IO, cast

_IN_MEMORY = 256 << 10


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
