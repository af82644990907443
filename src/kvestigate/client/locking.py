"""The lock that kubectl takes before it writes a kubeconfig."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep other programs from writing `file`. FileExistsError if one is at it already."""
    lock = file.with_name(file.name + ".lock")
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
