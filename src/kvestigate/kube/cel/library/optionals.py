"""Values that may not be there."""

from __future__ import annotations

from typing import Any

from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.signatures import Library
from kvestigate.kube.cel.values import NOTHING, Duration, Optional


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise EvalError("optional.none() dereference")
    return optional.value


def _non_zero(value: Any) -> Optional:
    empty = value in (None, False, 0, "", b"") if not isinstance(value, list | dict) else not value
    return NOTHING if empty or value == Duration(0) else Optional(True, value)


def _unwrapped(values: list[Optional]) -> list[Any]:
    return [each.value for each in values if each.present]


FUNCTIONS: Library = {
    "optional.of(A) -> optional_type(A)": lambda value: Optional(True, value),
    "optional.ofNonZeroValue(A) -> optional_type(A)": _non_zero,
    "optional.none() -> optional_type(A)": lambda: NOTHING,
    "optional_type(A)::hasValue() -> bool": lambda optional: optional.present,
    "optional_type(A)::value() -> A": _value,
    "optional_type(A)::or(optional_type(A)) -> optional_type(A)": (
        lambda one, other: one if one.present else other
    ),
    "optional_type(A)::orValue(A) -> A": (lambda one, other: one.value if one.present else other),
    "optional.unwrap(list(optional_type(A))) -> list(A)": _unwrapped,
    "list(optional_type(A))::unwrapOpt() -> list(A)": _unwrapped,
}
