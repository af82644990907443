"""Values in the notation of the server's messages, which is Go's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAP, LIST = "map[string]interface {}", "[]interface {}"
"""What Go calls the types of objects and lists."""


def shown(value: Any) -> str:
    """A decoded JSON value as Go prints it: `map[name:web ports:[80 443]]`."""
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(shown, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def type_of(value: Any) -> str:
    """What Go calls the type of a value that was read from JSON."""
    if value is None:
        return "<nil>"
    if isinstance(value, Mapping):
        return MAP
    if isinstance(value, list):
        return LIST
    return {str: "string", bool: "bool", int: "int64"}.get(type(value), "float64")
