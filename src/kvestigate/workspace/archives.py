"""Local directories and archives as trees, and the part of them that has to be sent as a tar."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tarfile import TarInfo
from typing import IO, NamedTuple

from kvestigate.errors import InputError
from kvestigate.kube import pauses
from kvestigate.workspace.trees import Entry, Excludes, Kind, Tree
from kvestigate_client.members import (
    PIECE,
    ArchiveLimits,
    ArchiveRefused,
    Member,
    MemberKind,
    Members,
    opened_tar,
)

_MOST_ENTRIES = 1_000_000
_MOST_SENT = 250_000
"""Entries of an archive from somebody else, who may not take our memory."""
_LARGEST = 64 << 30
"""Bytes that an archive may unpack to."""
_DEEPEST = 64
_LONGEST_CHECK = 60.0
"""Seconds for reading all of an archive from somebody else."""
_BROKEN = (OSError, EOFError, zlib.error)


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
        self._excludes = Excludes(excludes)
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
            if self._excludes.match(path):
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
        limits = ArchiveLimits(
            entries=_MOST_SENT, unpacked=_LARGEST, depth=_DEEPEST, seconds=_LONGEST_CHECK
        )
        try:
            self._items = self._read(limits, Excludes(excludes))
        except ArchiveRefused as error:
            raise InputError(str(error), where="archive") from None

    def tree(self) -> dict[str, Entry]:
        return {path: item.entry for path, item in self._items.items()}

    def members(self, paths: Iterable[str]) -> Iterator[tuple[TarInfo, IO[bytes] | None]]:
        """In the order that they have in the archive: gzip cannot go back but to its beginning."""
        content = opened_tar(self._file)
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

    def _read(self, limits: ArchiveLimits, excludes: Excludes) -> dict[str, _Item]:
        found: dict[str, _Item] = {}
        for member in Members(self._file, limits):
            pauses.rest_if_due()
            if member.kind is MemberKind.HARD_LINK:
                found[member.name] = _same(member, found)
            else:
                found[member.name] = _item(member)
        kept: dict[str, _Item] = {}
        for path, item in found.items():
            pauses.rest_if_due()
            if path and not excludes.match(path):
                kept[path] = item
        return kept

    def _place(self, path: str) -> tuple[bool, int, str]:
        item = self._items[path]
        return item.type != tarfile.DIRTYPE, item.offset, path


def _item(member: Member) -> _Item:
    size, target = 0, ""
    match member.kind:
        case MemberKind.FILE:
            kind, size = tarfile.REGTYPE, member.size
        case MemberKind.DIRECTORY:
            kind = tarfile.DIRTYPE
        case MemberKind.SYMLINK:
            kind, target = tarfile.SYMTYPE, member.target
        case _:
            kind = tarfile.CHRTYPE
    return _Item(kind, member.mode, size, member.modified, target, member.offset)


def _same(member: Member, found: Mapping[str, _Item]) -> _Item:
    item = found.get(member.target)
    if item is None or item.type != tarfile.REGTYPE:
        raise ArchiveRefused(f"{member.name!r} is a hard link to no file of the archive")
    return item


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


def _anonymous(info: TarInfo) -> None:
    """Users here mean nothing there, and parts of seconds are not compared."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = int(info.mtime)
    info.mode = (info.mode & 0o777) | 0o600
    info.pax_headers = {}
    if info.isdir():
        info.mode |= 0o100
