"""Reading documents that people write: every mistake is named with its path. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from kvestigate.errors import InputError


def known_fields(document: Mapping[str, Any], known: Collection[str], path: str) -> None:
    """Refuse fields that are not `known`; `path` ends with a dot or is empty."""
    for key in document:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            every = ", ".join(sorted(known))
            raise InputError(
                f"{path}{key}: no such field",
                hint=f"did you mean {path}{near[0]}?" if near else f"there are: {every}",
            )


def mapping(value: Any, path: str) -> Mapping[str, Any]:
    """A mapping; nothing is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{path}: {value!r} is not a mapping")
    return value


def listed(value: Any, path: str) -> list[Any]:
    """A list; nothing is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{path}: {value!r} is not a list")
    return value


def text(value: Any, path: str) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{path}: {value!r} is not text")
    return value
