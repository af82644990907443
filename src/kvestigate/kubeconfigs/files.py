"""Kubeconfig files as written, once it is sure that they are kubeconfigs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvestigate.client.kubeconfig import parse_config
from kvestigate.client.located import parse
from kvestigate.errors import ConfigError


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
    value: Any = parse(str(path), data).value
    return value or {}
