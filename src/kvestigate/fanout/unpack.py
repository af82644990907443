"""Unpacking an untrusted tar stream into a directory, and never outside of it.

Only files, directories and links within the tree are created. Links are created last, so that
nothing is written through them. An archive with a name outside of the tree is refused.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from kvestigate.errors import KvestigateError


@dataclass(frozen=True, slots=True)
class Unpacked:
    files: int
    bytes: int
    skipped: tuple[str, ...]


def unpack(archive: BinaryIO, destination: Path) -> Unpacked:
    """Create `destination`, which must not exist, from the file or directory in the archive."""
    tree = _Tree(destination)
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                tree.add(tar, member)
    except tarfile.TarError as error:
        raise KvestigateError(f"the target did not send a tar archive: {error}") from error
    except OSError as error:
        raise KvestigateError(f"cannot write {error.filename}: {error.strerror}") from error
    return tree.finish()


class _Tree:
    """The files and directories created so far."""

    def __init__(self, destination: Path) -> None:
        self._destination = destination
        self._top = ""
        self._files: dict[tuple[str, ...], Path] = {}
        self._directories: dict[tuple[str, ...], int] = {}
        self._links: dict[tuple[str, ...], str] = {}
        self._skipped: list[str] = []
        self._bytes = 0

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = self._below(member.name)
        if member.isdir():
            self._directory(parts, member.mode)
        elif member.isreg() and not member.issparse():
            self._file(tar, member, parts)
        elif member.islnk() and self._below(member.linkname) in self._files:
            self._copy(self._files[self._below(member.linkname)], parts)
        elif member.issym() and _stays(parts, member.linkname):
            self._links[parts] = member.linkname
        else:
            self._skipped.append(member.name)

    def finish(self) -> Unpacked:
        for parts, leads_to in self._links.items():
            path = self._place(parts)
            path.symlink_to(leads_to)
        # Last, because a directory may become read-only.
        for parts, mode in reversed(self._directories.items()):
            self._path(parts).chmod(mode & 0o777 | stat.S_IRWXU)
        if not self._files and not self._directories:
            raise KvestigateError("PATH is neither a file nor a directory")
        return Unpacked(len(self._files), self._bytes, tuple(self._skipped))

    def _below(self, name: str) -> tuple[str, ...]:
        """The parts after the first, which all entries share; `.` is ignored."""
        parts = [part for part in PurePosixPath(name).parts if part != "."]
        self._top = self._top or (parts[0] if parts else ".")
        if self._top != ".":
            top, *parts = parts or [""]
            if top != self._top:
                raise _leaves(name)
        if self._top in ("/", "..") or {"/", ".."}.intersection(parts) or "\0" in name:
            raise _leaves(name)
        return tuple(parts)

    def _path(self, parts: tuple[str, ...]) -> Path:
        return self._destination.joinpath(*parts)

    def _place(self, parts: tuple[str, ...]) -> Path:
        """A path that does not exist yet; its parent directories are created."""
        for depth in range(len(parts)):
            above = parts[:depth]
            if above in self._files:
                raise KvestigateError(f"the archive is refused: {'/'.join(above)!r} is a file")
            if above not in self._directories:
                self._directory(above, 0o755)
        path = self._path(parts)
        if os.path.lexists(path):
            raise KvestigateError(f"the archive is refused: {'/'.join(parts)!r} is in it twice")
        return path

    def _directory(self, parts: tuple[str, ...], mode: int) -> None:
        if parts not in self._directories:
            self._place(parts).mkdir(mode=0o700)
        self._directories[parts] = mode

    def _file(self, tar: tarfile.TarFile, member: tarfile.TarInfo, parts: tuple[str, ...]) -> None:
        path = self._place(parts)
        content = tar.extractfile(member)
        assert content is not None  # a regular file has content
        with path.open("xb") as stream:
            shutil.copyfileobj(content, stream)
        self._keep(path, parts, member.mode)

    def _copy(self, source: Path, parts: tuple[str, ...]) -> None:
        path = self._place(parts)
        shutil.copyfile(source, path)
        self._keep(path, parts, source.stat().st_mode)

    def _keep(self, path: Path, parts: tuple[str, ...], mode: int) -> None:
        path.chmod(mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
        self._files[parts] = path
        self._bytes += path.stat().st_size


def _leaves(name: str) -> KvestigateError:
    return KvestigateError(f"the archive is refused: {name!r} is outside of its directory")


def _stays(parts: tuple[str, ...], leads_to: str) -> bool:
    """Whether the target of a link at `parts` is below the top.

    A `..` after a name is refused: the name may be another link, whose parent is unknown.
    """
    names = PurePosixPath(leads_to).parts
    up = next((index for index, name in enumerate(names) if name != ".."), len(names))
    return "/" not in names and ".." not in names[up:] and up < len(parts)
