"""The values of expressions that Python has no type for, and what all values have in common.

int, double, bool, string, bytes, null, list and map are Python's int, float, bool, str, bytes,
None, list and dict.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import msgspec

NANO = 1_000_000_000


class Uint(int):
    """An unsigned integer of 64 bits."""


class Timestamp(msgspec.Struct, frozen=True, order=True):
    nanos: int
    """Since 1970, UTC."""


class Duration(msgspec.Struct, frozen=True, order=True):
    nanos: int


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value: `type(1)`, or the name `int`."""

    name: str


class Optional(msgspec.Struct, frozen=True):
    """A value or nothing."""

    present: bool = False
    value: Any = None


NOTHING = Optional()


class SetList(list[Any]):
    """A list of which the schema says that it is a set: its order means nothing."""


class KeyedList(list[Any]):
    """A list of which the schema says that it is a map: some fields tell its elements apart."""

    keys: tuple[str, ...] = ()

    def key(self, element: Any) -> tuple[Any, ...]:
        return tuple(element.get(name) for name in self.keys)


class DefaultMap(dict[str, Any]):
    """A map whose absent keys have an empty map as value, though `in` says that they are absent."""

    TYPE = "map"

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


class LateFields:
    """An object whose fields are only worked out when they are asked for: a policy's variables."""

    def field(self, key: str) -> Any:
        """The value; EvalError if it has none."""
        raise NotImplementedError


class Made(dict[str, Any]):
    """An object that an expression made of a type with a name."""

    def __init__(self, type_: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.TYPE = type_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Made) and self.TYPE == other.TYPE and super().__eq__(other)

    __hash__ = None


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: Any) -> str:
    """`int`, `list` and so on."""
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    return "list" if isinstance(value, list) else str(getattr(value, "TYPE", type(value).__name__))


_NUMBERS = (int, float, Uint)


def equal(left: Any, right: Any) -> bool:
    """Numbers are equal by value, whatever their type; values of other types never are."""
    kinds = type(left), type(right)
    if kinds[0] in _NUMBERS or kinds[1] in _NUMBERS:
        return kinds[0] in _NUMBERS and kinds[1] in _NUMBERS and left == right
    if isinstance(left, list) and isinstance(right, list):
        return _same_list(left, right)
    if kinds == (dict, dict):
        return len(left) == len(right) and all(
            key in right and equal(value, right[key]) for key, value in left.items()
        )
    if kinds == (Optional, Optional):
        return left.present == right.present and equal(left.value, right.value)
    return kinds[0] is kinds[1] and bool(left == right)


def _same_list(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, SetList) or isinstance(right, SetList):
        return all(contains(right, each) for each in left)
    keyed = left if isinstance(left, KeyedList) else right
    if isinstance(keyed, KeyedList):
        known = {keyed.key(each): each for each in right}
        return all(
            keyed.key(each) in known and equal(each, known[keyed.key(each)]) for each in left
        )
    return all(equal(one, other) for one, other in zip(left, right, strict=True))


def contains(values: list[Any], value: Any) -> bool:
    return any(equal(each, value) for each in values)


def joined(left: list[Any], right: list[Any]) -> list[Any]:
    """`left + right`: of sets each element once, of keyed lists the right one's where both are."""
    if isinstance(left, SetList):
        return SetList([*left, *(each for each in right if not contains(left, each))])
    if isinstance(left, KeyedList):
        later = {left.key(each): each for each in right}
        merged = KeyedList([later.pop(left.key(each), each) for each in left])
        merged.keys = left.keys
        merged.extend(later.values())
        return merged
    return [*left, *right]


_FROM_EXPONENT = 6
"""From this exponent on, Go's shortest form has one; below -4 too."""


def number_text(value: float) -> str:
    """A double as Go writes it at its shortest: `2.5`, `1e+06`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    negative, digits, power = Decimal(repr(value)).as_tuple()
    assert isinstance(power, int)
    sign = "-" if negative else ""
    text = "".join(map(str, digits)).rstrip("0")
    if not text:
        return f"{sign}0"
    point = len(digits) + power
    exponent = point - 1
    if exponent < -4 or exponent >= _FROM_EXPONENT:
        rest = f".{text[1:]}" if len(text) > 1 else ""
        return f"{sign}{text[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{text}"
    if point >= len(text):
        return sign + text.ljust(point, "0")
    return f"{sign}{text[:point]}.{text[point:]}"
