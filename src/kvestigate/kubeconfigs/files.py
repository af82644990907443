"""Kubeconfig files as they are written, once they are known to be valid, and two compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvestigate.client.kubeconfig import parse_config
from kvestigate.errors import ConfigError
from kvestigate.kube.documents import first_document
from kvestigate.kubeconfigs.difference import Difference, beside, difference


def read(path: Path) -> bytes:
    """ConfigError if that is not possible."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}", hint="give the path of a kubeconfig"
        ) from error


def as_written(path: Path, data: bytes) -> dict[str, Any]:
    """The mapping in `data`, unknown fields and all. ConfigError says what is wrong, and where."""
    parse_config(str(path), data)
    value: Any = first_document(data, str(path)).value
    return value or {}


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
