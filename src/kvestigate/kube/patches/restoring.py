"""What kube-apiserver says of a strategic merge patch that leaves a value of the wrong type.

It merges such a patch into an untyped object and turns the outcome into a typed one by other
means than those that read JSON, which have other words for the same mistakes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.kube import schema
from kvestigate.kube.facts import Definition, Field, Type, definition

_NUMBERS = {Type.INT32: "int32", Type.INT64: "int64", Type.NUMBER: "float64"}
_PLAIN = {**_NUMBERS, Type.STRING: "string", Type.BOOLEAN: "bool"}
_PYTHON: dict[Type, tuple[type, ...]] = {
    Type.INT32: (int,),
    Type.INT64: (int,),
    Type.NUMBER: (int, float),
    Type.STRING: (str,),
    Type.BOOLEAN: (bool,),
}


def complaint(value: Any, of: Definition) -> str:
    """Of the first value that does not fit; empty if all do."""
    return next(_value(value, Field(Type.DEFINED, of.name)), "")


def _value(value: Any, field: Field) -> Iterator[str]:
    if value is None:
        return
    type_ = field.type
    if type_ is Type.DEFINED:
        of = definition(field.definition)
        if of.scalar is None:
            yield from _struct(value, of)
            return
        type_ = of.scalar
    if type_ in _PLAIN:
        if type(value) not in _PYTHON[type_]:
            yield _unconvertible(value, type_)
    elif type_ in (Type.LIST, Type.MAP):
        yield from _inside(value, field)
    elif type_ is Type.BYTES and not isinstance(value, str):
        yield f"cannot restore slice from {_kind(value)}"
    else:
        found = schema.misfit(value, type_)
        if found:
            yield f"error decoding from json: {found}" if type_ is Type.BYTES else found


def _struct(value: Any, of: Definition) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"cannot restore struct from: {_kind(value)}"
        return
    for name, field in of.fields.items():
        if name in value:
            yield from _value(value[name], field)


def _inside(value: Any, field: Field) -> Iterator[str]:
    assert field.element is not None
    wanted, name = (list, "slice") if field.type is Type.LIST else (dict, "map")
    if not isinstance(value, wanted):
        yield f"cannot restore {name} from {_kind(value)}"
        return
    for each in value.values() if isinstance(value, dict) else value:
        yield from _value(each, field.element)


def _unconvertible(value: Any, type_: Type) -> str:
    source, target = _kind(value), _PLAIN[type_]
    # Go can make a text of an integer and an integer of a float, so it says why it will not.
    known = source == "int64" and type_ is Type.STRING
    if known or (source == "float64" and type_ in _NUMBERS):
        return f"cannot convert {source} to {target}"
    return f"unrecognized type: {target}"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "map"
    if isinstance(value, list):
        return "slice"
    return {int: "int64", float: "float64"}.get(type(value), "string")
