"""The columns that a definition gives its kind. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds.custom import jsonpath
from kvestigate.cluster.plane.kinds.custom.kind import CustomKind
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import NAME, Cells, Column, Columns, since

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}

Cell = Callable[[Any, float], Any]


@lru_cache(maxsize=4096)
def columns_for(kind: CustomKind) -> Columns:
    """Name and what the definition lists; age if it lists nothing."""
    listed = list(_readable(kind.columns or [_AGE]))
    readers = [(jsonpath.parse(each["jsonPath"]), _CELLS[each["type"]]) for each in listed]

    def cells(obj: Object, now: float) -> Cells:
        made: Cells = [obj["metadata"]["name"]]
        for steps, cell in readers:
            found = jsonpath.find(obj, steps)
            made.append(cell(found[0], now) if found else None)
        return made

    return Columns((NAME, *map(_column, listed)), cells)


def _readable(listed: list[Object]) -> Iterator[Object]:
    """The columns before the first whose path nobody can read: definitions may have such."""
    for each in listed:
        try:
            jsonpath.parse(each["jsonPath"])
        except jsonpath.Unreadable:
            return
        yield each


def _column(listed: Object) -> Column:
    path = f"Custom resource definition column (in JSONPath format): {listed['jsonPath']}"
    return Column(
        listed["name"],
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
