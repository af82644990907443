"""The columns that a definition gives its kind. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds.custom import jsonpath
from kvestigate.cluster.plane.kinds.custom.kind import CustomKind
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import NAME, Column, Columns, since

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}

Cell = Callable[[Any, float], Any]


@lru_cache(maxsize=4096)
def columns_for(kind: CustomKind) -> Columns:
    """Name and what the definition lists; age if it lists nothing."""
    return Columns(NAME, *map(_column, _readable(kind.columns or [_AGE])))


def _readable(listed: list[Object]) -> Iterator[Object]:
    """The columns before the first one whose path cannot be parsed: definitions may have such."""
    for entry in listed:
        try:
            jsonpath.parse(entry["jsonPath"])
        except jsonpath.Unreadable:
            return
        yield entry


def _column(listed: Object) -> Column:
    steps, cell = jsonpath.parse(listed["jsonPath"]), _CELLS[listed["type"]]

    def read(obj: Object, now: float) -> Any:
        values = jsonpath.find(obj, steps)
        return cell(values[0], now) if values else None

    path = f"Custom resource definition column (in JSONPath format): {listed['jsonPath']}"
    return Column(
        listed["name"],
        read,
        listed["type"],
        listed.get("format", ""),
        listed.get("priority", 0),
        listed.get("description") or path,
    )


def _text(value: Any, now: float) -> Any:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _integer(value: Any, now: float) -> Any:
    return int(value) if type(value) in (int, float) else None


def _number(value: Any, now: float) -> Any:
    return value if type(value) in (int, float) else None


def _boolean(value: Any, now: float) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: float) -> Any:
    if not isinstance(value, str):
        return None
    try:
        return since(value, now)
    except ValueError:
        return "<invalid>"


_CELLS: dict[str, Cell] = {
    "boolean": _boolean,
    "date": _date,
    "integer": _integer,
    "number": _number,
    "string": _text,
}
