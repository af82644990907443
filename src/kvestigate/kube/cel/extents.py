"""How much there can be of a value with some schema, given that a request has its limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvestigate.kube.cel.schema import escaped, properties

Schema = Mapping[str, Any]

REQUEST = 3 * 1024 * 1024
"""Bytes that a request may have."""
_QUOTES = 2


@dataclass(frozen=True, slots=True)
class Extent:
    most: int = 0
    """Elements, entries or characters; none of what has no length."""
    least_bytes: int = 1
    """Of the shortest JSON."""
    fields: Mapping[str, Extent] = field(default_factory=dict)
    """By the names that expressions use."""
    element: Extent | None = None
    """Of a list or a map."""
    key: Extent | None = None

    @property
    def repeats(self) -> int:
        """How often there can be one in a request, whatever it is in."""
        return REQUEST // (self.least_bytes + 1)


_SCALARS = {"boolean": Extent(0, 4), "number": Extent(0, 1), "integer": Extent(0, 1)}
_FORMATS = {
    "duration": Extent(32, 3),
    "date": Extent(12, 12),
    "date-time": Extent(32, 21),
}
_KEY = Extent(0, _QUOTES)
_UTF8 = 4
"""Bytes that a character may take."""


def extent_of(schema: Schema, *, root: bool = False) -> Extent | None:
    """None if expressions cannot see the value."""
    if schema.get("x-kubernetes-int-or-string"):
        longest = schema.get("maxLength")
        return Extent(REQUEST - _QUOTES if longest is None else max(0, longest) * _UTF8, 1)
    kind = schema.get("type") or ("object" if root else "")
    if kind == "string":
        return _text(schema)
    if kind == "array":
        return _list(schema)
    if kind == "object":
        extra = schema.get("additionalProperties")
        return _map(schema, extra) if isinstance(extra, dict) else _object(schema, root=root)
    return _SCALARS.get(kind)


def _inner(schema: Schema) -> Extent | None:
    return extent_of(schema, root=bool(schema.get("x-kubernetes-embedded-resource")))


def _text(schema: Schema) -> Extent:
    form, longest = schema.get("format", ""), schema.get("maxLength")
    if form in _FORMATS:
        return _FORMATS[form]
    if longest is not None:
        return Extent(max(0, longest) * (1 if form == "byte" else _UTF8), _QUOTES)
    if schema.get("enum") and form != "byte":
        lengths = [len(each.encode()) for each in schema["enum"] if isinstance(each, str)]
        return Extent(max(lengths, default=0), _QUOTES)
    return Extent(REQUEST - _QUOTES, _QUOTES)


def _list(schema: Schema) -> Extent | None:
    items = schema.get("items")
    element = _inner(items) if isinstance(items, dict) else None
    if element is None:
        return None
    most = schema.get("maxItems")
    if most is None:
        most = (REQUEST - 2) // (element.least_bytes + 1)
    return Extent(max(0, most), 2, element=element)


def _map(schema: Schema, extra: Schema) -> Extent | None:
    element = _inner(extra)
    if element is None:
        return None
    most = schema.get("maxProperties")
    if most is None:
        most = (REQUEST - 2) // (element.least_bytes + 6)  # a key, a colon and a comma
    return Extent(max(0, most), 2, element=element, key=_KEY)


def _object(schema: Schema, *, root: bool) -> Extent:
    required = schema.get("required") or ()
    fields: dict[str, Extent] = {}
    least = 2
    for name, each in properties(schema, root=root).items():
        made = _inner(each)
        if made is None:
            continue
        if written := escaped(name):
            fields[written] = made
        if name in required and each.get("default") is None:
            least += len(name.encode()) + made.least_bytes + 4
    return Extent(0, least, fields)
