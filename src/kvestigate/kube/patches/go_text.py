"""Values in the notation of the server's messages, which is Go's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
