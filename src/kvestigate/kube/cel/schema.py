"""From the schema of a custom resource to the type of `self`, and from its values to those."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from kvestigate.kube.cel import types
from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.types import Field, Type
from kvestigate.kube.cel.values import KeyedList, SetList

Schema = Mapping[str, Any]
Convert = Callable[[Any], Any]

_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    }
)
_NAME = re.compile(r"[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*", re.ASCII)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_META: Schema = {
    "type": "object",
    "properties": {n: {"type": "string"} for n in ("name", "generateName")},
}
_RESOURCE: dict[str, Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": _META,
}
_SCALARS = {
    "integer": types.INT,
    "number": types.DOUBLE,
    "boolean": types.BOOL,
}
_FORMATS = {
    "byte": types.BYTES,
    "duration": types.DURATION,
    "date": types.TIMESTAMP,
    "date-time": types.TIMESTAMP,
}


def escaped(name: str) -> str:
    """How a property is called in expressions; empty if it cannot be."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return ""
    for text, stands_for in _ESCAPES:
        name = name.replace(text, stands_for)
    return name


def type_of(schema: Schema, *, root: bool = False, path: str = "selfType") -> Type | None:
    """The type of a value with this schema; None if nothing can be said of it."""
    if schema.get("x-kubernetes-int-or-string"):
        return types.DYN
    kind = schema.get("type")
    if kind == "string":
        return _FORMATS.get(schema.get("format", ""), types.STRING)
    if kind == "array":
        items = schema.get("items")
        inner = type_of(items, path=f"{path}.@idx") if isinstance(items, dict) else None
        return None if inner is None else types.list_of(inner)
    if kind == "object" or root:
        return _object(schema, root=root, path=path)
    return _SCALARS.get(kind or "")


def _object(schema: Schema, *, root: bool, path: str) -> Type | None:
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        inner = type_of(extra, path=f"{path}.@prop")
        return None if inner is None else types.map_of(types.STRING, inner)
    fields: dict[str, Field] = {}
    for name, each in properties(schema, root=root).items():
        made = type_of(each, path=f"{path}.{name}")
        if made is not None and (written := escaped(name)):
            fields[written] = Field(name, made)
            if name in _RESERVED:  # of fields, too, as they are: no rule could mean anything else
                fields[name] = fields[written]
    return Type(path, (), _Fields(fields))


class _Fields(dict[str, Field]):
    """Hashable by what it is, so that types are: no two schemas share one."""

    def __hash__(self) -> int:  # type: ignore[override] # dicts have none
        return id(self)


def properties(schema: Schema, *, root: bool) -> Mapping[str, Schema]:
    """Those of the schema, and those that every resource has."""
    own: Mapping[str, Schema] = schema.get("properties") or {}
    if root or schema.get("x-kubernetes-embedded-resource"):
        return {**own, **_RESOURCE}
    return own


# -- values -----------------------------------------------------------------------------


def converter(schema: Schema, *, root: bool = False) -> Convert | None:
    """Makes of a decoded value what expressions work with; None if that is the value itself."""
    kind = schema.get("type")
    if kind == "number":
        return lambda value: float(value) if type(value) is int else value
    if kind == "string":
        return _TEXTS.get(schema.get("format", ""))
    if kind == "array":
        return _list_converter(schema)
    if kind == "object" or root:
        return _object_converter(schema, root=root)
    return None


def _list_converter(schema: Schema) -> Convert | None:
    items = schema.get("items")
    inner = converter(items) if isinstance(items, dict) else None
    list_type = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if inner is None and list_type not in ("set", "map"):
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        elements = [inner(each) for each in value] if inner is not None else value
        if list_type == "set":
            return SetList(elements)
        if list_type == "map":
            keyed = KeyedList(elements)
            keyed.keys = keys
            return keyed
        return elements

    return convert


def _object_converter(schema: Schema, *, root: bool) -> Convert | None:
    extra = schema.get("additionalProperties")
    other = converter(extra) if isinstance(extra, dict) else None
    known = {
        name: made
        for name, each in properties(schema, root=root).items()
        if (made := converter(each)) is not None
    }
    if not known and other is None:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: inner if (make := known.get(name, other)) is None else make(inner)
            for name, inner in value.items()
        }

    return convert


def _reading(read: Callable[[str], Any]) -> Convert:
    """What does not read stays as it is: the schema's own rules tell of it."""

    def convert(value: Any) -> Any:
        try:
            return read(value) if isinstance(value, str) else value
        except (EvalError, binascii.Error, ValueError):
            return value

    return convert


_TEXTS: dict[str, Convert] = {
    "byte": _reading(lambda text: base64.b64decode(text, validate=True)),
    "duration": _reading(times.duration),
    "date": _reading(lambda text: times.timestamp(f"{text}T00:00:00Z")),
    "date-time": _reading(times.timestamp),
}
