"""Operators and the functions of every type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from kvestigate.kube.cel import values
from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.signatures import Library
from kvestigate.kube.cel.values import Duration, Optional, Timestamp, TypeValue, Uint, equal

_INT = range(-(2**63), 2**63)
_UINT = range(2**64)


def _int(compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def run(left: int, right: int) -> int:
        value = compute(left, right)
        if value not in _INT:
            raise EvalError("integer overflow")
        return value

    return run


def _uint(compute: Callable[[int, int], int]) -> Callable[[int, int], Uint]:
    def run(left: int, right: int) -> Uint:
        value = compute(left, right)
        if value not in _UINT:
            raise EvalError("unsigned integer overflow")
        return Uint(value)

    return run


def _divide(left: int, right: int) -> int:
    """Towards zero, as processors do."""
    if right == 0:
        raise EvalError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvalError("modulus by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if math.isnan(left) or left == 0:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _element(elements: list[Any], position: int) -> Any:
    if 0 <= position < len(elements):
        return elements[position]
    raise EvalError(f"index out of bounds: {position}")


def _value(entries: dict[Any, Any], key: Any) -> Any:
    try:
        return entries[key]
    except KeyError:
        raise EvalError(f"no such key: {key}") from None


def _maybe_element(elements: list[Any], position: int) -> Optional:
    if 0 <= position < len(elements):
        return Optional(True, elements[position])
    return values.NOTHING


def _maybe_value(entries: dict[Any, Any], key: Any) -> Optional:
    return Optional(True, entries[key]) if key in entries else values.NOTHING


def _through(get: Callable[[Any, Any], Any]) -> Callable[[Optional, Any], Optional]:
    def run(target: Optional, key: Any) -> Optional:
        if not target.present:
            return values.NOTHING
        found: Optional = get(target.value, key)
        return found

    return run


def _comparisons() -> Library:
    """`<` and the others: of one type, and of numbers of any two."""
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    numbers = ("int", "uint", "double")
    pairs = [(left, right) for left in numbers for right in numbers]
    pairs += [(each, each) for each in ("bool", "string", "bytes", "timestamp", "duration")]
    return {
        f"_{sign}_({left}, {right}) -> bool": run
        for sign, run in compare.items()
        for left, right in pairs
    }


def _shift(sign: int) -> Callable[[Timestamp, Duration], Timestamp]:
    return lambda time, length: Timestamp(time.nanos + sign * length.nanos)


FUNCTIONS: Library = {
    **_comparisons(),
    "_==_(A, A) -> bool": equal,
    "_!=_(A, A) -> bool": lambda left, right: not equal(left, right),
    "!_(bool) -> bool": operator.not_,
    "-_(int) -> int": lambda value: _int(operator.sub)(0, value),
    "-_(double) -> double": operator.neg,
    "_+_(int, int) -> int": _int(operator.add),
    "_+_(uint, uint) -> uint": _uint(operator.add),
    "_+_(double, double) -> double": operator.add,
    "_+_(string, string) -> string": operator.add,
    "_+_(bytes, bytes) -> bytes": operator.add,
    "_+_(list(A), list(A)) -> list(A)": values.joined,
    "_+_(timestamp, duration) -> timestamp": _shift(1),
    "_+_(duration, timestamp) -> timestamp": lambda length, time: _shift(1)(time, length),
    "_+_(duration, duration) -> duration": lambda one, two: Duration(one.nanos + two.nanos),
    "_-_(int, int) -> int": _int(operator.sub),
    "_-_(uint, uint) -> uint": _uint(operator.sub),
    "_-_(double, double) -> double": operator.sub,
    "_-_(timestamp, timestamp) -> duration": lambda one, two: Duration(one.nanos - two.nanos),
    "_-_(timestamp, duration) -> timestamp": _shift(-1),
    "_-_(duration, duration) -> duration": lambda one, two: Duration(one.nanos - two.nanos),
    "_*_(int, int) -> int": _int(operator.mul),
    "_*_(uint, uint) -> uint": _uint(operator.mul),
    "_*_(double, double) -> double": operator.mul,
    "_/_(int, int) -> int": _int(_divide),
    "_/_(uint, uint) -> uint": _uint(_divide),
    "_/_(double, double) -> double": _divide_doubles,
    "_%_(int, int) -> int": _int(_remainder),
    "_%_(uint, uint) -> uint": _uint(_remainder),
    "@in(A, list(A)) -> bool": lambda value, elements: values.contains(elements, value),
    "@in(A, map(A, B)) -> bool": lambda key, entries: key in entries,
    "_[_](list(A), int) -> A": _element,
    "_[_](map(A, B), A) -> B": _value,
    "_[_](optional_type(list(A)), int) -> optional_type(A)": _through(_maybe_element),
    "_[_](optional_type(map(A, B)), A) -> optional_type(B)": _through(_maybe_value),
    "_[?_](list(A), int) -> optional_type(A)": _maybe_element,
    "_[?_](map(A, B), A) -> optional_type(B)": _maybe_value,
    "_[?_](optional_type(list(A)), int) -> optional_type(A)": _through(_maybe_element),
    "_[?_](optional_type(map(A, B)), A) -> optional_type(B)": _through(_maybe_value),
    "size(string) -> int": len,
    "size(bytes) -> int": len,
    "size(list(A)) -> int": len,
    "size(map(A, B)) -> int": len,
    "string::size() -> int": len,
    "bytes::size() -> int": len,
    "list(A)::size() -> int": len,
    "map(A, B)::size() -> int": len,
    "type(A) -> type(A)": lambda value: TypeValue(values.type_name(value)),
    "dyn(A) -> dyn": lambda value: value,
}
