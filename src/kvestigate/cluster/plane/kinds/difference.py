"""What changed between two values, for messages about what must not change. Pure."""

from __future__ import annotations

import difflib
from typing import Any

import msgspec

_CONTEXT = 3


def difference(old: Any, new: Any) -> str:
    """A unified diff of the two as indented JSON, without the names of files."""
    lines = difflib.unified_diff(_lines(old), _lines(new), lineterm="", n=_CONTEXT)
    return "".join(f"{line}\n" for line in list(lines)[2:])


def _lines(value: Any) -> list[str]:
    encoded = msgspec.json.encode(value, order="sorted")
    return msgspec.json.format(encoded, indent=1).decode().splitlines()
