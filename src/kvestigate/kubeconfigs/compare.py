"""`kubeconfig diff`: two files and what they point to, compared."""

from __future__ import annotations

from pathlib import Path

from kvestigate.kubeconfigs.difference import Difference, beside, difference
from kvestigate.kubeconfigs.files import as_written, read


def compare(before: Path, after: Path) -> Difference:
    """ConfigError if one of them is no kubeconfig."""
    return difference(
        as_written(before, read(before)),
        as_written(after, read(after)),
        beside(str(before), _content),
        beside(str(after), _content),
    )


def _content(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None
