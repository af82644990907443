"""The members of a tar from a stranger, read once from front to back, and only within limits.

Python's `tarfile` is made for archives of friends: it follows offsets backwards (a negative size
never ends), keeps every member, reads a header as long as the header says, and merges two
notations of one name. So only single headers are decoded with it. All that an archive says of
itself is checked before it is believed: names cannot leave the directory, sizes cannot be
negative, and a small archive cannot become a large one without being noticed.
"""

from __future__ import annotations

import enum
import gzip
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, NamedTuple, cast

PIECE = 256 << 10
"""Bytes of content that are read at once."""
_BLOCK = tarfile.BLOCKSIZE
_MOST_HEADER_BYTES = 256 << 10
"""Of a name, and of what else there is to say of one member."""
_SMALL = 256 << 20
"""Bytes that any archive may unpack to, however small it is."""
_GZIP_MAGIC = b"\x1f\x8b"


class ArchiveRefused(tarfile.TarError):
    """An archive that is damaged, too large, or made to do harm."""


@dataclass(frozen=True)
class ArchiveLimits:
    """What is refused because it is too much."""

    entries: int = 1_000_000
    unpacked: int = 1 << 40
    """Bytes of all files together."""
    depth: int = 100
    """Directories above a file."""
    path: int = 4096
    """Bytes of a name, and of where a link leads."""
    ratio: int = 250
    """How many times as large as the archive its files may be together."""
    seconds: float = float("inf")
    """For reading all of it."""


class MemberKind(enum.Enum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    HARD_LINK = "hard link"
    OTHER = "other"
    """Devices, pipes, sparse files, and what nobody knows."""


_MEMBER_KINDS = {
    tarfile.REGTYPE: MemberKind.FILE,
    tarfile.AREGTYPE: MemberKind.FILE,
    tarfile.CONTTYPE: MemberKind.FILE,
    tarfile.DIRTYPE: MemberKind.DIRECTORY,
    tarfile.SYMTYPE: MemberKind.SYMLINK,
    tarfile.LNKTYPE: MemberKind.HARD_LINK,
}


class Member(NamedTuple):
    name: str
    """`a/b`: relative, without dots; empty for the root itself."""
    kind: MemberKind
    mode: int
    size: int
    modified: int
    target: str
    """Where a link leads: of a hard link a name like `name`, of a symlink as it is written."""
    offset: int
    """Where the content begins in the tar."""


class Members:
    """Iterate over it for the members; `content` is that of the last one."""

    def __init__(
        self,
        file: IO[bytes],
        limits: ArchiveLimits | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`file` is a tar, gzipped or not, that can be read from its beginning."""
        self._limits = limits or ArchiveLimits()
        self._now = now
        self._deadline = now() + self._limits.seconds
        self._file = file
        self._stream = opened_tar(file)
        self._zipped = self._stream is not file
        self._position = 0
        self._left = 0
        """Bytes of the current member's content that were not read yet."""
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        entries = unpacked = 0
        while (member := self._next()) is not None:
            entries += 1
            unpacked += member.size
            if entries > self._limits.entries:
                raise ArchiveRefused(f"has more than {self._limits.entries:,} files")
            if unpacked > self._limits.unpacked:
                most = self._limits.unpacked / (1 << 30)
                raise ArchiveRefused(f"unpacks to more than {most:.1f} GiB")
            yield member

    def content(self) -> Iterator[bytes]:
        """In pieces; once, and before the next member."""
        while self._left:
            piece = self._read(min(self._left, PIECE))
            if not piece:
                raise _broken("it is cut off")
            self._left -= len(piece)
            yield piece

    def _next(self) -> Member | None:
        self._skip(self._left + self._padding)
        self._left = self._padding = 0
        budget = _MOST_HEADER_BYTES
        said: dict[str, str] = {}
        while True:
            header = self._header()
            if header is None:
                if said:
                    raise _broken("a header describes no file")
                return None
            budget -= _BLOCK
            if header.type not in _EXTENSIONS:
                return self._member(header, said)
            budget -= header.size
            if header.size < 0 or budget < 0:
                raise _broken(f"headers of more than {_MOST_HEADER_BYTES} bytes")
            data = self._exactly(header.size)
            self._exactly(-header.size % _BLOCK)
            said |= _EXTENSIONS[header.type](data)

    def _header(self) -> tarfile.TarInfo | None:
        """None at the end: what comes behind it is nobody's."""
        block = self._exactly(_BLOCK)
        if not block.strip(b"\0"):
            return None
        try:
            return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise _broken(error) from None

    def _member(self, header: tarfile.TarInfo, said: dict[str, str]) -> Member:
        name = self._name(said.get("path", header.name))
        kind = _MEMBER_KINDS.get(header.type, MemberKind.OTHER)
        if any(key.startswith("GNU.sparse.") for key in said):
            kind = MemberKind.OTHER
        size, modified = _number(said, "size", header.size), _number(said, "mtime", header.mtime)
        if size < 0:
            raise _broken(f"{name!r} has a negative size")
        if size and kind not in (MemberKind.FILE, MemberKind.OTHER):
            raise _broken(f"{name!r} is a {kind.value} with content")
        target = said.get("linkpath", header.linkname)
        if len(target.encode("utf-8", "surrogateescape")) > self._limits.path:
            raise ArchiveRefused(f"{name!r} is a link to a name that is too long")
        if kind is MemberKind.HARD_LINK:
            target = self._name(target)
        self._left, self._padding = size, -size % _BLOCK
        return Member(name, kind, header.mode & 0o777, size, modified, target, self._position)

    def _name(self, written: str) -> str:
        parts = [part for part in written.split("/") if part not in ("", ".")]
        if written.startswith("/") or ".." in parts or "\0" in written:
            raise ArchiveRefused(f"{written!r} leads out of the directory")
        name = "/".join(parts)
        if len(parts) > self._limits.depth:
            raise ArchiveRefused(f"{name[:80]!r}... is more than {self._limits.depth} levels deep")
        if len(name.encode("utf-8", "surrogateescape")) > self._limits.path:
            raise ArchiveRefused(f"{name[:80]!r}... is longer than {self._limits.path} bytes")
        return name

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._read(count - len(data))
            if not piece:
                raise _broken("it is cut off")
            data += piece
        return data

    def _skip(self, count: int) -> None:
        if not self._zipped:  # what is not there is noticed when the next header is read
            self._stream.seek(count, 1)
            self._position += count
            return
        while count:
            piece = self._read(min(count, PIECE))
            if not piece:
                raise _broken("it is cut off")
            count -= len(piece)

    def _read(self, count: int) -> bytes:
        try:
            data = self._stream.read(count)
        except (OSError, EOFError, zlib.error) as error:
            raise _broken(error) from None
        self._position += len(data)
        if self._now() > self._deadline:
            raise ArchiveRefused(f"takes more than {self._limits.seconds:g} seconds to read")
        if self._zipped and self._position > max(_SMALL, self._limits.ratio * self._file.tell()):
            raise ArchiveRefused(f"unpacks to more than {self._limits.ratio} times its size")
        return data


def opened_tar(file: IO[bytes]) -> IO[bytes]:
    """The tar itself, from its beginning; `file` may be gzipped."""
    file.seek(0)
    zipped = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    file.seek(0)
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb")) if zipped else file


def _broken(why: object) -> ArchiveRefused:
    return ArchiveRefused(f"is no tar: {why}")


def _number(said: dict[str, str], key: str, default: float) -> int:
    try:
        return int(float(said[key])) if "." in said.get(key, "") else int(said.get(key, default))
    except (ValueError, OverflowError):
        raise _broken(f"{key} is no number") from None


def _header_text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("utf-8", "surrogateescape")


def _records(data: bytes) -> dict[str, str]:
    """`21 path=a/b\\n`, one behind the other: the number is the length of the record."""
    found: dict[str, str] = {}
    while data.strip(b"\0"):
        length, _, _ = data[:20].partition(b" ")
        if not length.isdigit() or not len(length) + 2 < int(length) <= len(data):
            raise _broken("a header with a wrong length")
        record, data = data[: int(length)], data[int(length) :]
        key, equals, value = record[len(length) + 1 : -1].partition(b"=")
        if not equals or not record.endswith(b"\n"):
            raise _broken("a header that names no field")
        found[_header_text(key)] = value.decode("utf-8", "surrogateescape")
    return found


def _of_all(data: bytes) -> dict[str, str]:
    """What is said of all members; nothing that could move one of them."""
    if {"path", "linkpath", "size"}.intersection(_records(data)):
        raise _broken("one name is given to all files")
    return {}


_EXTENSIONS: dict[bytes, Callable[[bytes], dict[str, str]]] = {
    tarfile.GNUTYPE_LONGNAME: lambda data: {"path": _header_text(data)},
    tarfile.GNUTYPE_LONGLINK: lambda data: {"linkpath": _header_text(data)},
    tarfile.XHDTYPE: _records,
    tarfile.SOLARIS_XHDTYPE: _records,
    tarfile.XGLTYPE: _of_all,
}
