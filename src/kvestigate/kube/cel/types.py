"""The types of expressions, how they are written in signatures, and what fits what."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from kvestigate.kube.cel import values


class Type(msgspec.Struct, frozen=True):
    name: str
    params: tuple[Type, ...] = ()
    fields: Mapping[str, Field] | None = None
    """Of objects with a schema: what can be selected, by the name to be written in CEL."""

    def __str__(self) -> str:
        shown = _SHOWN.get(self.name, self.name)
        return f"{shown}({', '.join(map(str, self.params))})" if self.params else shown

    @property
    def is_dynamic(self) -> bool:
        """Whether only the value will tell which type it is."""
        return self.name in ("dyn", "!error!")


class Field(msgspec.Struct, frozen=True):
    key: str
    """Under which the value is kept."""
    type: Type


_SHOWN = {"null_type": "null"}

DYN = Type("dyn")
ERROR = Type("!error!")
"""Of what is wrong in itself; fits everywhere, so that a mistake is told once."""
BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null_type")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")


class _Fields(dict[str, Field]):
    """The fields of a type; hashable by identity, as there is one for each type."""

    def __hash__(self) -> int:  # type: ignore[override] # dicts have none
        return id(self)


def object_of(name: str, /, **fields: Type) -> Type:
    """A type with these fields."""
    return Type(name, (), _Fields({key: Field(key, type_) for key, type_ in fields.items()}))


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", (value,))


_WORD = re.compile(r"\s*([\w.]+|[(),])")


@cache
def parsed(text: str) -> Type:
    """`list(A)`: a capital letter stands for any type, the same one throughout a signature."""
    words = _WORD.findall(text)
    made, rest = _parsed(words)
    assert not rest, text
    return made


def _parsed(words: list[str]) -> tuple[Type, list[str]]:
    name, rest = words[0], words[1:]
    params: list[Type] = []
    if rest and rest[0] == "(":
        while rest[0] in ("(", ","):
            inner, rest = _parsed(rest[1:])
            params.append(inner)
        rest = rest[1:]
    return Type(name, tuple(params)), rest


def is_parameter(type_: Type) -> bool:
    return len(type_.name) == 1


Bindings = dict[str, Type]


def fits(given: Type, wanted: Type, bound: Bindings) -> bool:
    """Whether a value of one type can be used for another; notes what parameters stand for."""
    if is_parameter(wanted):
        known = bound.get(wanted.name)
        if known is None or known.is_dynamic:
            bound[wanted.name] = given
            return True
        if fits(given, known, bound):
            return True
        if fits(known, given, bound):
            bound[wanted.name] = given
            return True
        return False
    if given.is_dynamic or wanted.is_dynamic:
        return True
    if given.name == "null_type":
        return wanted.name in _NULLABLE or wanted.fields is not None or "." in wanted.name
    if given.name != wanted.name or len(given.params) != len(wanted.params):
        return False
    if given.name == "type":
        return True
    return all(
        fits(one, other, bound) for one, other in zip(given.params, wanted.params, strict=True)
    )


_NULLABLE = ("null_type", "timestamp", "duration", "optional_type")


def resolved(type_: Type, bound: Bindings) -> Type:
    """A result type, with what its parameters turned out to be."""
    if is_parameter(type_):
        return bound.get(type_.name, DYN)
    if not type_.params:
        return type_
    return Type(type_.name, tuple(resolved(each, bound) for each in type_.params), type_.fields)


def common(left: Type, right: Type) -> Type:
    """The type of what may be one or the other."""
    if left == right:
        return left
    if left.is_dynamic or right.is_dynamic:
        return DYN
    bound: Bindings = {}
    return left if fits(right, left, bound) and fits(left, right, bound) else DYN


Check = Callable[[Any], bool]

_CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": values.Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null_type": type(None),
    "map": dict,
    "timestamp": values.Timestamp,
    "duration": values.Duration,
    "type": values.TypeValue,
    "optional_type": values.Optional,
}


@cache
def check_of(type_: Type) -> Check:
    """Tells whether a value is of the type; what is inside of it is not looked at."""
    if type_.name == "dyn" or is_parameter(type_):
        return lambda value: True
    if type_.name == "list":
        return lambda value: isinstance(value, list)
    wanted = _CLASSES.get(type_.name)
    if wanted is not None:
        return lambda value: type(value) is wanted
    return lambda value: getattr(value, "TYPE", "") == type_.name
