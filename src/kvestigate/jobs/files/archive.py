"""Local files on their way into a task: one archive, cut into pieces that are sent on their own."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.model import Upload
from kvestigate.jobs.tasks.pieces import MOST_PIECES, PIECE, Files

_LEFT_OUT = frozenset((".git", "__pycache__"))
_IN_MEMORY = 8 << 20
_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Archive:
    """A tar with one entry an upload, named by its position: `0`, `1`."""

    file: IO[bytes] = field(repr=False)
    """All pieces, one after the other."""
    starts: tuple[int, ...]
    """The offset of each piece in the file, and the end of the last one."""
    files: Files

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return len(self.starts) - 1

    def piece(self, index: int) -> bytes:
        """A gzip member: those of all pieces, one after the other, are one gzipped tar."""
        start, end = self.starts[index : index + 2]
        self.file.seek(start)
        return self.file.read(end - start)


@contextmanager
def packed(uploads: Sequence[Upload], base: Path) -> Iterator[Archive]:
    """The files of `uploads`; relative sources are below `base`. Equal files give equal bytes."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        pieces = _Pieces(file)
        # Written from front to back: each piece is compressed once, whoever it is sent to.
        with tarfile.open(fileobj=pieces, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for index, upload in enumerate(uploads):
                _add(tar, upload, base, index)
        yield pieces.archive()


class _Pieces(io.RawIOBase):
    """Takes a tar and writes its pieces to a file."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._rest = bytearray()
        self._starts = [0]
        self._digests: list[str] = []
        self._whole = hashlib.sha256()

    def write(self, data: Any, /) -> int:
        self._rest += data
        while len(self._rest) >= PIECE:
            self._end_piece()
        return len(data)

    def archive(self) -> Archive:
        if self._rest:
            self._end_piece()
        digests = tuple(self._digests) if len(self._digests) <= MOST_PIECES else ()
        return Archive(self._file, tuple(self._starts), Files(self._whole.hexdigest(), digests))

    def _end_piece(self) -> None:
        content = gzip.compress(self._rest[:PIECE], _LEVEL, mtime=0)
        del self._rest[:PIECE]
        self._file.write(content)
        self._starts.append(self._starts[-1] + len(content))
        self._digests.append(hashlib.sha256(content).hexdigest())
        self._whole.update(content)


def _add(tar: tarfile.TarFile, upload: Upload, base: Path, index: int) -> None:
    source = base / Path(upload.source).expanduser()
    try:
        tar.add(source, arcname=str(index), filter=_plain)
    except OSError as error:
        raise InputError(
            f"{upload.source!r} cannot be read: {error.strerror}", where=upload.where
        ) from error


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The entry without owner and fractions of a second, which differ between machines."""
    if Path(member.name).name in _LEFT_OUT or not (
        member.isfile() or member.isdir() or member.issym()
    ):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = int(member.mtime)
    return member
