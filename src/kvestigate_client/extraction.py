"""The one way in which an archive becomes files on this machine.

Nothing that the archive says is ever resolved by the kernel as a path: every step goes into a
directory by its descriptor, one name at a time, and never through a link. All is made in a fresh
directory that nobody else can enter, links last, and only what is whole and harmless is moved to
its place. So an archive that is refused has written nothing, however far it was read.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kvestigate_client.members import ArchiveLimits, ArchiveRefused, Member, MemberKind, Members

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LATEST = 1 << 40
"""Seconds since 1970 that file systems may not know."""

Parts = tuple[str, ...]


@dataclass(frozen=True)
class Unpacked:
    names: tuple[str, ...]
    """What was put into the directory."""
    files: int
    bytes: int
    skipped: tuple[str, ...]
    """Links that lead elsewhere, devices and such, which were not made."""


def extract(
    archive: IO[bytes],
    target: str | Path,
    *,
    name: str | None = None,
    limits: ArchiveLimits | None = None,
) -> Unpacked:
    """Put the files of a tar into the directory `target`; ArchiveRefused if it means harm.

    With `name` the archive must be of one file or directory, which is called so. Files that are
    there are replaced, directories stay. The one who calls owns `target` and what leads to it.
    """
    with _opened(os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as place:
        fresh = f".unpacking-{secrets.token_hex(8)}"
        os.mkdir(fresh, 0o700, dir_fd=place)
        try:
            with _opened(os.open(fresh, _DIRECTORY, dir_fd=place)) as root:
                tree = _Tree(root, name)
                try:
                    members = Members(archive, limits)
                    for member in members:
                        tree.add(member, members.content())
                    unpacked = tree.finish()
                finally:
                    tree.close()
                _check_room(root, place)
                _move(root, place)
        finally:
            shutil.rmtree(fresh, dir_fd=place)
    return unpacked


@contextmanager
def _opened(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _Way:
    """Descriptors of the directory that was last used and of those above it."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._open: list[tuple[str, int]] = []

    def to(self, directory: Parts) -> int:
        """The directory's descriptor, which stays open until another one is asked for."""
        common = 0
        for wanted, (known, _) in zip(directory, self._open, strict=False):
            if wanted != known:
                break
            common += 1
        self._leave(common)
        for part in directory[common:]:
            descriptor = os.open(part, _DIRECTORY, dir_fd=self._last)
            self._open.append((part, descriptor))
        return self._last

    def close(self) -> None:
        self._leave(0)

    @property
    def _last(self) -> int:
        return self._open[-1][1] if self._open else self._root

    def _leave(self, kept: int) -> None:
        while len(self._open) > kept:
            os.close(self._open.pop()[1])


class _Tree:
    """What an archive has become so far, in a directory that nobody else writes to."""

    def __init__(self, root: int, name: str | None) -> None:
        self._name = name
        self._top: str | None = None
        """What the archive calls that which is to be called `name`."""
        self._way, self._other = _Way(root), _Way(root)
        self._files: set[Parts] = set()
        self._directories: dict[Parts, int] = {(): 0o755}
        self._links: dict[Parts, str] = {}
        self._skipped: list[str] = []
        self._bytes = 0

    def add(self, member: Member, content: Iterator[bytes]) -> None:
        parts = self._parts(member.name)
        match member.kind:
            case MemberKind.DIRECTORY:
                self._directory(parts)
                self._directories[parts] = member.mode
            case MemberKind.FILE:
                self._file(parts, member, content)
            case MemberKind.HARD_LINK if self._parts(member.target) in self._files:
                self._same(parts, self._parts(member.target))
            case MemberKind.SYMLINK:
                if parts in self._links:
                    raise _twice(parts)
                self._links[parts] = member.target
            case _:
                self._skipped.append(member.name)

    def finish(self) -> Unpacked:
        tops = {parts[0] for parts in (*self._files, *self._directories, *self._links) if parts}
        for parts, leads_to in self._links.items():
            if not _stays(parts, leads_to, tops):
                self._skipped.append("/".join(parts))
                continue
            at = self._above(parts)
            with _once(parts):
                os.symlink(leads_to, parts[-1], dir_fd=at)
        for parts, mode in self._directories.items():
            if parts:
                os.fchmod(self._way.to(parts), mode & 0o755 | 0o700)
        names = tuple(_names_in(self._way.to(())))
        if self._name is not None and not names:
            raise ArchiveRefused("is neither a file nor a directory")
        return Unpacked(names, len(self._files), self._bytes, tuple(self._skipped))

    def close(self) -> None:
        self._way.close()
        self._other.close()

    def _parts(self, name: str) -> Parts:
        parts = tuple(name.split("/")) if name else ()
        if self._name is None:
            return parts
        first, rest = (parts[0], parts[1:]) if parts else ("", ())
        if self._top is None:
            self._top = first
        if self._top == "":  # an archive of a directory that calls it `.`
            return (self._name, *parts)
        if first != self._top:
            raise ArchiveRefused(f"{name!r} is outside of {self._top!r}")
        return (self._name, *rest)

    def _above(self, parts: Parts) -> int:
        """The descriptor of the directory that it is in, which is made if need be."""
        if not parts:
            raise ArchiveRefused("has a file where a directory must be")
        self._directory(parts[:-1])
        return self._way.to(parts[:-1])

    def _directory(self, parts: Parts) -> None:
        if parts in self._directories:
            return
        at = self._above(parts)
        with _once(parts):
            os.mkdir(parts[-1], 0o700, dir_fd=at)
        self._directories[parts] = 0o755

    def _file(self, parts: Parts, member: Member, content: Iterator[bytes]) -> None:
        at = self._above(parts)
        with _once(parts):
            descriptor = os.open(parts[-1], _NEW_FILE, 0o600, dir_fd=at)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for piece in content:
                while piece:
                    piece = piece[file.write(piece) :]
            os.fchmod(descriptor, member.mode & 0o755 | 0o600)
            if 0 <= member.modified < _LATEST:
                with suppress(OSError):
                    os.utime(descriptor, (member.modified, member.modified))
        self._files.add(parts)
        self._bytes += member.size

    def _same(self, parts: Parts, source: Parts) -> None:
        """Another name of a file of this archive."""
        at, there = self._above(parts), self._other.to(source[:-1])
        with _once(parts):
            os.link(source[-1], parts[-1], src_dir_fd=there, dst_dir_fd=at, follow_symlinks=False)
        self._files.add(parts)


@contextmanager
def _once(parts: Parts) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise _twice(parts) from None


def _twice(parts: Parts) -> ArchiveRefused:
    return ArchiveRefused(f"{'/'.join(parts)!r} is in it twice")


def _stays(parts: Parts, leads_to: str, tops: set[str]) -> bool:
    """Whether a link at `parts` can only lead to what is in the same archive.

    A `..` behind a name is refused: the name may be another link, whose parent is unknown. Next
    to the archive's own files there may be others, which are none of its business.
    """
    names = [name for name in leads_to.split("/") if name not in ("", ".")]
    up = next((index for index, name in enumerate(names) if name != ".."), len(names))
    if not leads_to or leads_to.startswith("/") or "\0" in leads_to or ".." in names[up:]:
        return False
    if up >= len(parts):
        return False
    return up < len(parts) - 1 or (len(names) > up and names[up] in tops)


def _check_room(source: int, target: int, above: str = "") -> None:
    """ArchiveRefused if a directory would have to replace something else, or the other way."""
    for name in _names_in(source):
        kinds = [_is_directory(name, at) for at in (source, target)]
        if kinds[1] is not None and kinds[0] != kinds[1]:
            kind = "a directory" if kinds[1] else "not a directory"
            raise ArchiveRefused(f"{above}{name!r} is there already, and is {kind}")
        if all(kinds):
            with _both(name, source, target) as (inner, there):
                _check_room(inner, there, f"{above}{name}/")


def _move(source: int, target: int) -> None:
    for name in _names_in(source):
        if _is_directory(name, source) and _is_directory(name, target):
            with _both(name, source, target) as (inner, there):
                _move(inner, there)
        else:
            os.replace(name, name, src_dir_fd=source, dst_dir_fd=target)


def _names_in(directory: int) -> list[str]:
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries)


@contextmanager
def _both(name: str, source: int, target: int) -> Iterator[tuple[int, int]]:
    with (
        _opened(os.open(name, _DIRECTORY, dir_fd=source)) as inner,
        _opened(os.open(name, _DIRECTORY, dir_fd=target)) as there,
    ):
        yield inner, there


def _is_directory(name: str, at: int) -> bool | None:
    """None if there is nothing of that name. A link is none, wherever it leads."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None
