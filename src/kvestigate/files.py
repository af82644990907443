"""Files that are whole or not there, and its owner's alone: how we write those we keep."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def home() -> Path | None:
    """The user's directory, if they have one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def private_directory(path: Path) -> None:
    """Make a directory that only its owner can use, whatever it was before. Raises OSError.

    One in which everybody may put files, such as /tmp, is not made private but refused.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & stat.S_ISVTX:
        raise PermissionError(errno.EPERM, "the directory is shared with other users", str(path))
    path.chmod(0o700)


def private_file(path: Path, flags: int) -> int:
    """The descriptor of a file that only its owner can use, whatever it was before.

    `flags` are those of `os.open`. Devices and pipes stay as they are. Raises OSError.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) and stat.S_IMODE(mode) != 0o600:
            os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def replace_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Put `content` at `path` at once: a reader sees the old file or the new one, never a part.

    A file that is there keeps its permissions unless `mode` says otherwise; a new one is its
    owner's alone. A link keeps pointing where it points. Raises OSError and leaves no trace.
    """
    target = path.resolve()
    if mode is None:
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o600
    import tempfile  # slow, and few commands write

    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
