"""Local files on their way into a task: one archive, cut into pieces that are sent on their own."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from kvestigate.errors import InputError
from kvestigate.jobs.model import Upload
from kvestigate.jobs.pieces import MOST_PIECES, PIECE, Files

_LEFT_OUT = frozenset((".git", "__pycache__"))
_IN_MEMORY = 8 << 20
_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Archive:
    """A tar with one entry an upload, named by its position: `0`, `1`."""

    tar: IO[bytes] = field(repr=False)
    size: int
    files: Files

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return -(-self.size // PIECE)

    def piece(self, index: int) -> bytes:
        """A gzip member: those of all pieces, one after the other, are one gzipped tar."""
        self.tar.seek(index * PIECE)
        return _compressed(self.tar.read(PIECE))


@contextmanager
def packed(uploads: Sequence[Upload], base: Path) -> Iterator[Archive]:
    """The files of `uploads`, whose relative sources are below `base`. Equal files, equal bytes."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for index, upload in enumerate(uploads):
                _add(tar, upload, base, index)
        size = file.tell()
        file.seek(0)
        whole, digests = hashlib.sha256(), []
        while raw := file.read(PIECE):
            content = _compressed(raw)
            whole.update(content)
            digests.append(hashlib.sha256(content).hexdigest())
        pieces = tuple(digests) if len(digests) <= MOST_PIECES else ()
        yield Archive(file, size, Files(whole.hexdigest(), pieces))


def _add(tar: tarfile.TarFile, upload: Upload, base: Path, index: int) -> None:
    source = base / Path(upload.source).expanduser()
    try:
        tar.add(source, arcname=str(index), filter=_plain)
    except OSError as error:
        raise InputError(
            f"{upload.source!r} cannot be read: {error.strerror}", where=upload.where
        ) from error


def _compressed(raw: bytes) -> bytes:
    return gzip.compress(raw, _LEVEL, mtime=0)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without what differs from machine to machine."""
    if Path(member.name).name in _LEFT_OUT or not (
        member.isfile() or member.isdir() or member.issym()
    ):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = int(member.mtime)
    return member
