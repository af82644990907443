"""Local directories and archives as trees, and the part of them that has to be sent as a tar."""

from __future__ import annotations

import copy
import io
import os
import stat
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from kvestigate.errors import InputError
from kvestigate.render.human import size
from kvestigate.workspace.trees import Entry, Kind, Tree, excluded

_MOST_ENTRIES = 1_000_000
_LARGEST = 64 << 30
"""Bytes; what an archive unpacks to is written to a file here before it is sent."""


class Material(ABC):
    """Files that should be in a workspace."""

    @abstractmethod
    def tree(self) -> Tree:
        """What there is."""

    @abstractmethod
    def add(self, tar: tarfile.TarFile, path: str) -> None:
        """Put one entry into a tar."""

    def pack(self, paths: Sequence[str], file: IO[bytes]) -> None:
        """Write a tar of some entries."""
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in paths:
                self.add(tar, path)


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

    def add(self, tar: tarfile.TarFile, path: str) -> None:
        try:
            info = tar.gettarinfo(str(self._base / path), arcname=path)
            _anonymous(info)
            if info.isreg():
                with (self._base / path).open("rb") as content:
                    tar.addfile(info, content)
            else:
                tar.addfile(info)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", where=str(self._base / path)
            ) from None


class Archive(Material):
    """A tar that somebody sent, gzipped or not."""

    def __init__(self, data: bytes, excludes: Sequence[str] = ()) -> None:
        self._data = data
        self._members: dict[str, tarfile.TarInfo] = {}
        try:
            with self._open() as tar:
                for member in tar:
                    path = _normal(member.name)
                    if path and not excluded(path, excludes):
                        self._members[path] = _resolved(tar, member)
        except (tarfile.TarError, OSError, EOFError, KeyError) as error:
            raise InputError(f"is no tar: {error}", where="archive") from None
        if sum(member.size for member in self._members.values()) > _LARGEST:
            raise InputError(f"unpacks to more than {size(_LARGEST)}", where="archive")

    def tree(self) -> dict[str, Entry]:
        return {path: _member(member) for path, member in self._members.items()}

    def pack(self, paths: Sequence[str], file: IO[bytes]) -> None:
        with self._open() as self._source:
            super().pack(paths, file)

    def add(self, tar: tarfile.TarFile, path: str) -> None:
        member = self._members[path]
        content = self._source.extractfile(member) if member.isreg() else None
        sent = copy.copy(member)
        sent.name = path
        _anonymous(sent)
        tar.addfile(sent, content)

    def only_file(self) -> tuple[str, tarfile.TarInfo, bytes]:
        """Path, description and content of the one file that it must hold."""
        found = list(self._members.items())
        if len(found) != 1 or not found[0][1].isreg():
            raise InputError("does not hold one file and nothing else", where="archive")
        [(path, member)] = found
        with self._open() as tar:
            content = tar.extractfile(member)
            return path, member, b"" if content is None else content.read()

    def _open(self) -> tarfile.TarFile:
        return tarfile.open(fileobj=io.BytesIO(self._data))


def _resolved(tar: tarfile.TarFile, member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The file that a hard link is another name of."""
    return tar.getmember(member.linkname) if member.islnk() else member


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


def _member(member: tarfile.TarInfo) -> Entry:
    if member.isdir():
        return Entry(Kind.DIRECTORY)
    if member.issym():
        return Entry(Kind.LINK, target=member.linkname)
    if member.isreg():
        return Entry(Kind.FILE, member.size, int(member.mtime), bool(member.mode & 0o100))
    return Entry(Kind.OTHER)


def _normal(name: str) -> str:
    """Without the `./` that many archives begin their names with; empty for the root itself."""
    while name.startswith("./"):
        name = name[2:]
    return "" if name == "." else name.rstrip("/") if name.strip("/") else name


def _anonymous(info: tarfile.TarInfo) -> None:
    """Users here mean nothing there, and parts of seconds are not compared."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = int(info.mtime)
    info.mode = (info.mode & 0o777) | 0o600
    info.pax_headers = {}
    if info.isdir():
        info.mode |= 0o100
