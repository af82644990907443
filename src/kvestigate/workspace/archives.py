"""Local directories and archives as trees, and the part of them that has to be sent as a tar."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tarfile import TarInfo
from typing import IO, NamedTuple, cast

from kvestigate.errors import InputError
from kvestigate.render.human import size
from kvestigate.workspace.trees import Entry, Kind, Tree, excluded

_MOST_ENTRIES = 1_000_000
_MOST_SENT = 250_000
"""Entries of an archive from somebody else, who may not take our memory."""
_LARGEST = 64 << 30
"""Bytes that an archive may unpack to."""
_GZIP = b"\x1f\x8b"
_BROKEN = (tarfile.TarError, OSError, EOFError, zlib.error)
PIECE = 256 << 10
"""Bytes of content that are read at once."""
_LONGEST_HEADERS = 256 << 10
"""Bytes of a name, and of what else there is to say of one file."""


class Material(ABC):
    """Files that should be in a workspace."""

    @abstractmethod
    def tree(self) -> Tree:
        """What there is."""

    @abstractmethod
    def members(self, paths: Iterable[str]) -> Iterator[tuple[TarInfo, IO[bytes] | None]]:
        """Some entries, and the content of those that are files until the next is asked for.

        Directories come before what is in them.
        """

    def packed(self, paths: Iterable[str]) -> Iterator[bytes]:
        """A tar of some entries, in pieces: never more of it than a piece is in memory."""
        return _gathered(_tar(self.members(paths)))


def _tar(members: Iterable[tuple[TarInfo, IO[bytes] | None]]) -> Iterator[bytes]:
    for info, content in members:
        yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        if content is not None:
            yield from _read(info, content)
            yield bytes(-info.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _read(info: TarInfo, content: IO[bytes]) -> Iterator[bytes]:
    """As many bytes as were announced."""
    left = info.size
    while left:
        try:
            piece = content.read(min(left, PIECE))
        except _BROKEN as error:
            raise InputError(f"cannot be read: {error}", where=info.name) from None
        if not piece:
            raise InputError("is shorter than it was said to be", where=info.name)
        left -= len(piece)
        yield piece


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """In fewer and larger ones."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


class Directory(Material):
    """A directory on this machine, or a single file of one."""

    def __init__(self, place: Path, excludes: Sequence[str] = ()) -> None:
        self._single = place.name if not place.is_dir() else ""
        self._base = place.parent if self._single else place
        self._excludes = excludes
        try:
            place.stat()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(place)) from None

    def tree(self) -> dict[str, Entry]:
        if self._single:
            return {self._single: _entry(self._base / self._single)}
        found: dict[str, Entry] = {}
        try:
            self._walk("", found)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", where=str(error.filename)
            ) from None
        return found

    def _walk(self, below: str, found: dict[str, Entry]) -> None:
        for each in os.scandir(self._base / below):
            path = f"{below}/{each.name}" if below else each.name
            if excluded(path, self._excludes):
                continue
            entry = _entry(Path(each.path))
            if entry.kind is Kind.OTHER:
                continue
            found[path] = entry
            if len(found) > _MOST_ENTRIES:
                raise InputError(f"has more than {_MOST_ENTRIES:,} files", where=str(self._base))
            if entry.kind is Kind.DIRECTORY:
                self._walk(path, found)

    def members(self, paths: Iterable[str]) -> Iterator[tuple[TarInfo, IO[bytes] | None]]:
        with tarfile.open(fileobj=io.BytesIO(), mode="w") as describing:
            for path in paths:
                place = self._base / path
                try:
                    info = describing.gettarinfo(str(place), arcname=path)
                    if info.islnk():  # its other name may stay behind
                        info.type, info.linkname = tarfile.REGTYPE, ""
                        info.size = place.stat().st_size
                    _anonymous(info)
                    if not info.isreg():
                        yield info, None
                        continue
                    with place.open("rb") as content:
                        yield info, content
                except OSError as error:
                    raise InputError(
                        f"cannot be read: {error.strerror}", where=str(place)
                    ) from None


class _Item(NamedTuple):
    """What is kept of a member: there may be very many, and tarfile's own are large."""

    type: bytes
    mode: int
    size: int
    modified: int
    target: str
    """Where a symbolic link leads."""
    offset: int
    """Where its content begins; of the file that a hard link is another name of, for that."""

    @property
    def entry(self) -> Entry:
        if self.type == tarfile.DIRTYPE:
            return Entry(Kind.DIRECTORY)
        if self.type == tarfile.SYMTYPE:
            return Entry(Kind.LINK, target=self.target)
        if self.type == tarfile.REGTYPE:
            return Entry(Kind.FILE, self.size, self.modified, bool(self.mode & 0o100))
        return Entry(Kind.OTHER)

    def named(self, path: str) -> TarInfo:
        info = TarInfo(path)
        info.type, info.mode, info.size = self.type, self.mode, self.size
        info.mtime, info.linkname = self.modified, self.target
        _anonymous(info)
        return info


class Archive(Material):
    """A tar that somebody sent, gzipped or not. It is read as often as needed, never kept."""

    def __init__(self, file: IO[bytes], excludes: Sequence[str] = ()) -> None:
        self._file = file
        try:
            self._items = self._read(excludes)
        except (*_BROKEN, KeyError, RecursionError) as error:  # headers of headers of headers
            raise InputError(f"is no tar: {error}", where="archive") from None

    def tree(self) -> dict[str, Entry]:
        return {path: item.entry for path, item in self._items.items()}

    def members(self, paths: Iterable[str]) -> Iterator[tuple[TarInfo, IO[bytes] | None]]:
        """In the order that they have in the archive: gzip cannot go back but to its beginning."""
        content = self._content()
        last = (-1, "")
        for path in sorted(paths, key=self._place):
            item = self._items[path]
            info = item.named(path)
            if item.type != tarfile.REGTYPE:
                yield info, None
            elif item.size and item.offset == last[0]:  # another name of the same file
                info.type, info.linkname, info.size = tarfile.LNKTYPE, last[1], 0
                yield info, None
            else:
                content.seek(item.offset)
                yield info, content
                last = item.offset, path

    def only_file(self) -> str:
        """Path of the one file that it must hold."""
        found = [path for path, item in self._items.items() if item.type == tarfile.REGTYPE]
        if len(found) != 1 or len(self._items) != 1:
            raise InputError("does not hold one file and nothing else", where="archive")
        return found[0]

    def content(self, path: str) -> Iterator[bytes]:
        """Of one of its files, in pieces."""
        for info, content in self.members([path]):
            if content is not None:
                yield from _read(info, content)

    def _read(self, excludes: Sequence[str]) -> dict[str, _Item]:
        total = entries = 0
        found: dict[str, _Item] = {}
        headers = _Headers(self._content())
        with tarfile.open(fileobj=cast("IO[bytes]", headers), mode="r:") as tar:
            while (member := tar.next()) is not None:
                headers.begin()
                tar.members.clear()  # type: ignore[attr-defined] # or it would keep them all
                tar.pax_headers = {}
                entries += 1
                total += member.size
                if entries > _MOST_SENT:
                    raise InputError(f"has more than {_MOST_SENT:,} files", where="archive")
                if total > _LARGEST:
                    raise InputError(f"unpacks to more than {size(_LARGEST)}", where="archive")
                path = _normal(member.name)
                found[path] = found[_normal(member.linkname)] if member.islnk() else _item(member)
        return {path: it for path, it in found.items() if path and not excluded(path, excludes)}

    def _place(self, path: str) -> tuple[bool, int, str]:
        item = self._items[path]
        return item.type != tarfile.DIRTYPE, item.offset, path

    def _content(self) -> IO[bytes]:
        """The tar itself, from its beginning."""
        self._file.seek(0)
        zipped = self._file.read(len(_GZIP)) == _GZIP
        self._file.seek(0)
        if zipped:
            return cast("IO[bytes]", gzip.GzipFile(fileobj=self._file, mode="rb"))
        return self._file


class _Headers:
    """A file of which only the headers are read, and of those of one member only so much.

    They say themselves how long they are and how many follow, and all are kept until the last
    one has come: a few bytes of gzip could mean more memory than there is.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell
        self.begin()

    def begin(self) -> None:
        """Those of another member follow."""
        self._left = _LONGEST_HEADERS

    def read(self, count: int) -> bytes:
        if not 0 <= count <= self._left:
            raise tarfile.ReadError(f"headers of more than {_LONGEST_HEADERS} bytes")
        self._left -= count
        return self._file.read(count)


def _item(member: TarInfo) -> _Item:
    kind = member.type
    if member.isreg():
        kind = tarfile.CHRTYPE if member.issparse() else tarfile.REGTYPE
    target = member.linkname if member.issym() else ""
    size = member.size if member.isreg() else 0
    return _Item(kind, member.mode, size, int(member.mtime), target, member.offset_data)


def _entry(path: Path) -> Entry:
    found = path.lstat()
    if stat.S_ISDIR(found.st_mode):
        return Entry(Kind.DIRECTORY)
    if stat.S_ISLNK(found.st_mode):
        return Entry(Kind.LINK, target=str(path.readlink()))
    if stat.S_ISREG(found.st_mode):
        runs = bool(found.st_mode & 0o100)
        return Entry(Kind.FILE, found.st_size, int(found.st_mtime), runs)
    return Entry(Kind.OTHER)


def _normal(name: str) -> str:
    """Without the `./` that many archives begin their names with; empty for the root itself."""
    while name.startswith("./"):
        name = name[2:]
    return "" if name == "." else name.rstrip("/") if name.strip("/") else name


def _anonymous(info: TarInfo) -> None:
    """Users here mean nothing there, and parts of seconds are not compared."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = int(info.mtime)
    info.mode = (info.mode & 0o777) | 0o600
    info.pax_headers = {}
    if info.isdir():
        info.mode |= 0o100
