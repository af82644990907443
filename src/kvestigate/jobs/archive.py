"""Local files on their way into a task: one archive, cut into parts that a Secret can hold."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kvestigate.errors import InputError
from kvestigate.jobs.model import Upload

PART = 700_000
"""Bytes of a part: as base64 below the 1 MiB that a Secret may have."""

LARGEST = 32 * PART
"""Beyond this, the cluster's own database is the wrong place."""

_LEFT_OUT = frozenset((".git", "__pycache__"))


@dataclass(frozen=True, slots=True)
class Archive:
    """A gzipped tar with one entry a upload, named by its position: `0`, `1`."""

    content: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def parts(self) -> list[bytes]:
        return [self.content[start : start + PART] for start in range(0, len(self.content), PART)]


def pack(uploads: Sequence[Upload], base: Path) -> Archive:
    """The files of `uploads`, whose relative sources are below `base`. Equal files, equal bytes."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for index, upload in enumerate(uploads):
            source = base / Path(upload.source).expanduser()
            try:
                tar.add(source, arcname=str(index), filter=_plain)
            except OSError as error:
                raise InputError(
                    f"{upload.source!r} cannot be read: {error.strerror}", where=upload.where
                ) from error
            if buffer.tell() > LARGEST:
                break
    if buffer.tell() > LARGEST:
        raise InputError(
            f"{uploads[0].source!r} and what else is uploaded is more than {LARGEST >> 20} MiB "
            "when compressed",
            where=uploads[0].where,
            hint="put large files on a volume: `k8s-cli volumes create`",
        )
    return Archive(buffer.getvalue())


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
