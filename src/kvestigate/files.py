"""Files that are whole or not there: the one way in which we write those we keep."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def home() -> Path | None:
    """The user's directory, if they have one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def replace_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Put `content` at `path` at once: a reader sees the old file or the new one, never a part.

    A file that is there keeps its permissions unless `mode` says otherwise; a new one is its
    owner's alone. A link keeps pointing where it points. Raises OSError and leaves no trace.
    """
    target = path.resolve()
    if mode is None:
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o600
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
