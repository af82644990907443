"""Directories as archives that fit into requests, and back."""

from __future__ import annotations

import fnmatch
import gzip
import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ARCHIVE_BYTES = 16 * 1024 * 1024
"""Of files in one archive, unless one file alone is larger."""
LARGEST_FILE = 40 * 1024 * 1024
"""What still fits into a request, which is base64 and 64 MiB at most."""


def pack(source: str | Path, excludes: Sequence[str] = ()) -> Iterator[bytes]:
    """Gzipped tars that together hold a file, or all that is in a directory.

    What matches one of `excludes`, by its name or its path, stays behind with all that is in it.
    """
    root = Path(source)
    if not root.exists():
        raise FileNotFoundError(f"there is no {source}")
    batch: list[tuple[Path, str]] = []
    size = 0
    for path, name in _members(root, excludes):
        length = path.stat().st_size if path.is_file() and not path.is_symlink() else 0
        if length > LARGEST_FILE:
            limit = LARGEST_FILE // 1024**2
            raise ValueError(f"{path}: has {length} bytes, and more than {limit} MiB do not fit")
        if batch and size + length > ARCHIVE_BYTES:
            yield _archive(batch)
            batch, size = [], 0
        batch.append((path, name))
        size += length
    yield _archive(batch)


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


def _archive(members: Sequence[tuple[Path, str]]) -> bytes:
    """The same bytes for the same files, whoever packs them; no sockets, pipes and devices."""
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
            if member.isreg():
                with path.open("rb") as content:
                    tar.addfile(member, content)
            elif member.isdir() or member.issym():
                tar.addfile(member)
    return target.getvalue()


def unpack(archive: bytes, target: str | Path) -> None:
    """Put what an archive holds below `target`; one that reaches out of it is refused."""
    Path(target).mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as tar:
        tar.extractall(target, filter="data")
