"""Directories as archives that fit into requests, and back."""

from __future__ import annotations

import fnmatch
import gzip
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kvestigate_client.extraction import Unpacked, extract

ARCHIVE_BYTES = 16 * 1024 * 1024
"""Of files in one archive: what fails is sent again, and older gateways take 64 MiB of base64."""


class Packed(NamedTuple):
    """Files for one request."""

    archive: bytes
    """A gzipped tar."""
    offset: int = 0
    """Where its file goes on; 0: its files are whole, or it begins here."""


Listing = Mapping[str, Mapping[str, Any]]
"""Path -> what `workspace.fetch` says of an entry of a directory."""


def pack(
    source: str | Path, excludes: Sequence[str] = (), there: Listing | None = None
) -> Iterator[Packed]:
    """Archives that together hold a file, or all that is in a directory; large files in parts.

    What matches one of `excludes`, by its name or its path, stays behind with all that is in it;
    so does what is `there` already, by its size, its time of change and whether it is executable.
    """
    known = there or {}
    root = Path(source)
    if not root.exists():
        raise FileNotFoundError(f"there is no {source}")
    batch: list[tuple[Path, str]] = []
    size = 0
    for path, name in _members(root, excludes):
        if name in known and _is_same(path, known[name]):
            continue
        length = path.stat().st_size if path.is_file() and not path.is_symlink() else 0
        if length > ARCHIVE_BYTES:
            yield from _parts(path, name)
            continue
        if batch and size + length > ARCHIVE_BYTES:
            yield Packed(_archive(batch))
            batch, size = [], 0
        batch.append((path, name))
        size += length
    if batch or (root.is_dir() and not known):
        yield Packed(_archive(batch))


def _is_same(path: Path, entry: Mapping[str, Any]) -> bool:
    """As rsync compares: a file of the same size and time of change, to the second, is the same."""
    here = path.lstat()
    if stat.S_ISLNK(here.st_mode):
        return entry["kind"] == "link" and bool(entry["target"] == str(path.readlink()))
    if stat.S_ISDIR(here.st_mode):
        return bool(entry["kind"] == "directory")
    found = entry["kind"], entry["size"], entry["modified"], entry["executable"]
    wanted = "file", here.st_size, int(here.st_mtime), bool(here.st_mode & 0o100)
    return stat.S_ISREG(here.st_mode) and found == wanted


def _parts(path: Path, name: str) -> Iterator[Packed]:
    offset = 0
    with path.open("rb") as content:
        while part := content.read(ARCHIVE_BYTES):
            yield Packed(_archive([(path, name)], part), offset)
            offset += len(part)


def _members(root: Path, excludes: Sequence[str]) -> Iterator[tuple[Path, str]]:
    if not root.is_dir():
        yield root, root.name
        return
    for directory, folders, files in os.walk(root):
        here = Path(directory)
        kept = [it for it in sorted(folders) if not _excluded(root, here / it, excludes)]
        folders[:] = [it for it in kept if not (here / it).is_symlink()]
        for name in [*kept, *sorted(files)]:
            path = here / name
            if not _excluded(root, path, excludes):
                yield path, path.relative_to(root).as_posix()


def _excluded(root: Path, path: Path, excludes: Sequence[str]) -> bool:
    relative = path.relative_to(root).as_posix()
    return any(
        fnmatch.fnmatchcase(path.name, pattern.rstrip("/"))
        or fnmatch.fnmatchcase(relative, pattern.rstrip("/"))
        for pattern in excludes
    )


def _archive(members: Sequence[tuple[Path, str]], part: bytes | None = None) -> bytes:
    """The same bytes for the same files, whoever packs them; no sockets, pipes and devices.

    `part` is what there is to be of the one file.
    """
    target = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=target, mode="wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, name in members:
            member = tar.gettarinfo(path, arcname=name)
            if member.islnk():  # its other name may be in another archive
                member.type, member.linkname, member.size = tarfile.REGTYPE, "", path.stat().st_size
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            if part is not None:
                member.size = len(part)
                tar.addfile(member, io.BytesIO(part))
            elif member.isreg():
                with path.open("rb") as content:
                    tar.addfile(member, content)
            elif member.isdir() or member.issym():
                tar.addfile(member)
    return target.getvalue()


def unpack(archive: bytes, target: str | Path) -> Unpacked:
    """Put what an archive holds below `target`; one that reaches out of it is refused."""
    Path(target).mkdir(parents=True, exist_ok=True)
    return extract(io.BytesIO(archive), target)
