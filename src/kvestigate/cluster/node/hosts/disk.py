"""What a node leaves on the machine: its disk, for its next start, and in the end nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def leave_disk(directory: Path, disk: str) -> None:
    """Remove what a node had besides its disk: logs, the volumes of pods, records."""
    for path in directory.iterdir():
        if path.name == disk:
            continue
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()


def remove_tree(path: Path) -> None:
    """Remove a directory of which overlayfs or a pod may have locked parts."""
    for parent, names, _ in os.walk(path):
        for name in names:
            below = Path(parent, name)
            if not below.is_symlink() and not os.access(below, os.R_OK | os.W_OK | os.X_OK):
                with contextlib.suppress(OSError):
                    below.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
