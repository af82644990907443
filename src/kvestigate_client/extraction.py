"""Taking files out of an archive of somebody else's, without leaving the directory for them."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

_FILES, _DIRECTORIES, _EXECUTABLE = 0o644, 0o755, 0o100


def extract(
    tar: tarfile.TarFile, target: str | Path, members: Iterable[tarfile.TarInfo] | None = None
) -> None:
    """Put the members, or all, below `target`; TarError if one would reach out of it."""
    for member in tar if members is None else members:
        if hasattr(tarfile, "data_filter"):
            tar.extract(member, target, filter="data")
        else:
            tar.extract(_harmless(member, Path(target).resolve()), target)


# -- for Python before 3.11.4, which has no filters ----------------------------------------


def _harmless(member: tarfile.TarInfo, target: Path) -> tarfile.TarInfo:
    """The member, nobody's in particular; its place is judged when all before it are there."""
    member.name = member.name.lstrip("/")
    place = target / member.name
    _check(member, place, target)
    if member.issym():
        if Path(member.linkname).is_absolute():
            raise tarfile.ExtractError(f"{member.name!r} is a link to an absolute path")
        _check(member, place.parent / member.linkname, target)
    elif member.islnk():
        _check(member, target / member.linkname, target)
    elif member.isdir():
        member.mode = _DIRECTORIES
    elif member.isreg():
        member.mode = _DIRECTORIES if member.mode & _EXECUTABLE else _FILES
    else:
        raise tarfile.ExtractError(f"{member.name!r} is a device or a pipe")
    member.uid, member.gid = os.getuid(), os.getgid()
    member.uname = member.gname = ""
    return member


def _check(member: tarfile.TarInfo, place: Path, target: Path) -> None:
    if not place.resolve().is_relative_to(target):
        raise tarfile.ExtractError(f"{member.name!r} leads out of the directory")
