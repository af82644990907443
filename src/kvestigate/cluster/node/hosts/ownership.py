"""Giving a volume to the group that a pod shares it by, as `fsGroup` asks."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from kvestigate.cluster.node.hosts.interface import Ownership

_WRITE, _READ, _ENTER = 0o660, 0o440, 0o110


def give(
    path: Path, group: int, *, read_only: bool = False, only_on_mismatch: bool = False
) -> None:
    """Let `group` have all that is below `path`; whoever may give nothing away leaves it."""
    added = _READ if read_only else _WRITE
    if only_on_mismatch and _belongs(path, group, added):
        return
    try:
        for inner, _, files in os.walk(path, topdown=False):
            for name in files:
                _give_one(Path(inner) / name, group, added)
            _give_one(Path(inner), group, added)
    except PermissionError:
        pass  # everything runs as one user, who owns it


def _give_one(path: Path, group: int, added: int) -> None:
    os.chown(path, -1, group, follow_symlinks=False)
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return
    if stat.S_ISDIR(mode):
        added |= _ENTER | stat.S_ISGID
    path.chmod(stat.S_IMODE(mode) | added)


def _belongs(path: Path, group: int, added: int) -> bool:
    status = path.stat()
    wanted = added | _ENTER | stat.S_ISGID
    return status.st_gid == group and status.st_mode & wanted == wanted


def giving(ownership: Ownership, path: str) -> list[str]:
    """The same as lines of a shell, for a `path` that only it sees."""
    where, group = shlex.quote(path), ownership.group
    give = (
        f"find {where} -exec chgrp -h {group} {{}} + && "
        f"find {where} -type d -exec chmod ug+rwx,g+s {{}} + && "
        f"find {where} ! -type d ! -type l -exec chmod ug+rw {{}} +"
    )
    if not ownership.only_on_mismatch:
        return [f"{{ {give}; }} 2>/dev/null || :"]
    return [
        f"case $(stat -c %g:%A {where}) in {group}:drwxrws*) ;; "
        f"*) {{ {give}; }} 2>/dev/null || :;; esac"
    ]
