"""The schemas inside of a schema, and the names of what custom resources add to them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
LIST_TYPE, LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"

_JUNCTORS = ("allOf", "oneOf", "anyOf")
_SCALARS = ("boolean", "integer", "number", "string")
_PLAIN = frozenset(
    {
        "description",
        "enum",
        "maxLength",
        "maximum",
        "minLength",
        "minimum",
        "nullable",
        "title",
        "type",
    }
)


def notable(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """The schemas of the values inside, without scalars of which nothing is said that could be
    wrong: they are most of a schema."""
    if isinstance(extra := schema.get("additionalProperties"), dict):
        yield extra, f"{path}.additionalProperties"
    fields = schema.get("properties") or {}
    for name in sorted([name for name in fields if not _is_plain(fields[name])]):
        yield fields[name], f"{path}.properties[{name}]"
    if isinstance(items := schema.get("items"), dict):
        yield items, f"{path}.items"


def _is_plain(schema: Schema) -> bool:
    return schema.keys() <= _PLAIN and schema.get("type") in _SCALARS


def alternatives(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """The schemas in allOf, anyOf, oneOf and not, with their paths."""
    if schema.get("not"):
        yield schema["not"], f"{path}.not"
    for key in _JUNCTORS:
        for position, inner in enumerate(schema.get(key) or ()):
            yield inner, f"{path}.{key}[{position}]"
