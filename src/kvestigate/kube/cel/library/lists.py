"""Lists and sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from kvestigate.kube.cel.failures import NO_OVERLOAD, EvalError
from kvestigate.kube.cel.signatures import Library
from kvestigate.kube.cel.values import NOTHING, Duration, Optional, contains, equal

_COMPARABLE = ("int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration")
_SUMMABLE = ("int", "uint", "double", "duration")


def _is_sorted(values: list[Any]) -> bool:
    return all(one <= other for one, other in pairwise(values))


def _extreme(name: str, choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def run(values: list[Any]) -> Any:
        if not values:
            raise EvalError(f"{name} called on empty list")
        return choose(values)

    return run


def _sum(values: list[Any]) -> Any:
    if not values:
        return 0
    if isinstance(values[0], Duration):
        return Duration(sum(value.nanos for value in values))
    total = sum(values)
    if isinstance(values[0], float):
        return float(total)
    if not -(2**63) <= total < 2**63:
        raise EvalError("integer overflow")
    return type(values[0])(total)


def _index_of(values: list[Any], value: Any) -> int:
    return next((at for at, each in enumerate(values) if equal(each, value)), -1)


def _last_index_of(values: list[Any], value: Any) -> int:
    positions = [at for at, each in enumerate(values) if equal(each, value)]
    return positions[-1] if positions else -1


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        raise EvalError(NO_OVERLOAD) from None


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not contains(found, value):
            found.append(value)
    return found


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, list) and depth > 0:
            found.extend(_flatten(value, depth - 1))
        else:
            found.append(value)
    return found


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvalError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvalError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(values):
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _at(position: int) -> Callable[[list[Any]], Optional]:
    return lambda values: Optional(True, values[position]) if values else NOTHING


def _has_all(values: list[Any], others: list[Any]) -> bool:
    return all(contains(values, other) for other in others)


_MOST = 1_000_000


def _range(count: int) -> list[int]:
    if count > _MOST:
        raise EvalError(f"range of {count} is too long")
    return list(range(count))


FUNCTIONS: Library = {
    **{f"list({each})::isSorted() -> bool": _is_sorted for each in _COMPARABLE},
    **{f"list({each})::min() -> {each}": _extreme("min", min) for each in _COMPARABLE},
    **{f"list({each})::max() -> {each}": _extreme("max", max) for each in _COMPARABLE},
    **{f"list({each})::sum() -> {each}": _sum for each in _SUMMABLE},
    **{f"list({each})::sort() -> list({each})": _sorted for each in _COMPARABLE},
    "list(A)::indexOf(A) -> int": _index_of,
    "list(A)::lastIndexOf(A) -> int": _last_index_of,
    "list(A)::distinct() -> list(A)": _distinct,
    "list(list(A))::flatten() -> list(A)": _flatten,
    "list(dyn)::flatten(int) -> list(dyn)": _flatten,
    "list(A)::slice(int, int) -> list(A)": _slice,
    "list(A)::reverse() -> list(A)": lambda values: values[::-1],
    "list(A)::first() -> optional_type(A)": _at(0),
    "list(A)::last() -> optional_type(A)": _at(-1),
    "lists.range(int) -> list(int)": _range,
    "sets.contains(list(A), list(A)) -> bool": _has_all,
    "sets.equivalent(list(A), list(A)) -> bool": (
        lambda one, other: _has_all(one, other) and _has_all(other, one)
    ),
    "sets.intersects(list(A), list(A)) -> bool": (
        lambda one, other: any(contains(other, each) for each in one)
    ),
}
