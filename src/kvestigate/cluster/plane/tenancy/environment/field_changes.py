"""How two values of JSON differ, field by field. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from kvestigate.kube.fieldpaths import Path


class FieldChange(Struct, frozen=True, rename={"before": "from", "after": "to"}):
    path: str
    """`spec.containers[0].image`"""
    before: Any | UnsetType = UNSET
    """Absent when the field was."""
    after: Any | UnsetType = UNSET


def field_changes(before: Any, after: Any) -> list[FieldChange]:
    """In the order of the fields; lists are compared by position."""
    return list(_changes(before, after, None))


def _changes(before: Any, after: Any, path: Path | None) -> Iterator[FieldChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            inner = Path(key) if path is None else _below(path, key)
            yield from _changes(before.get(key, UNSET), after.get(key, UNSET), inner)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            at = Path("") if path is None else path
            yield from _changes(_item(before, index), _item(after, index), at.index(index))
    elif type(before) is not type(after) or before != after:
        yield FieldChange(str(path or ""), before, after)


def _below(path: Path, key: str) -> Path:
    """Keys that are no names (`app.kubernetes.io/name`) stand in brackets."""
    return path.child(key) if key.isidentifier() or key.isalnum() else path.key(key)


def _item(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else UNSET
