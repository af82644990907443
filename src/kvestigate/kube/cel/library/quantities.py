"""Kubernetes quantities: `quantity('1Gi').isGreaterThan(quantity('500M'))`."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from kvestigate.errors import InputError
from kvestigate.kube import quantities
from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.signatures import Library

_Q = "kubernetes.Quantity"


class Amount(msgspec.Struct, frozen=True):
    TYPE: ClassVar[str] = _Q
    nanos: int


def _parsed(text: str) -> Amount:
    try:
        return Amount(quantities.parse(text).nanos)
    except InputError:
        message = "quantities must match the regular expression"
        pattern = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise EvalError(f"{message} {pattern}") from None


def _is(text: str) -> bool:
    try:
        quantities.parse(text)
    except InputError:
        return False
    return True


def _nanos(other: Any) -> int:
    """Of another quantity, or of a number."""
    return int(other.nanos) if isinstance(other, Amount) else int(other) * quantities.NANO


def _as_integer(amount: Amount) -> int:
    whole, rest = divmod(amount.nanos, quantities.NANO)
    if rest or not -(2**63) <= whole < 2**63:
        raise EvalError("cannot convert value to integer")
    return whole


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _add(one: Amount, other: Any) -> Amount:
    return Amount(one.nanos + _nanos(other))


def _sub(one: Amount, other: Any) -> Amount:
    return Amount(one.nanos - _nanos(other))


FUNCTIONS: Library = {
    f"quantity(string) -> {_Q}": _parsed,
    "isQuantity(string) -> bool": _is,
    f"sign({_Q}) -> int": lambda amount: _sign(amount.nanos),
    f"{_Q}::isInteger() -> bool": lambda amount: not amount.nanos % quantities.NANO,
    f"{_Q}::asInteger() -> int": _as_integer,
    f"{_Q}::asApproximateFloat() -> double": lambda amount: amount.nanos / quantities.NANO,
    f"{_Q}::add({_Q}) -> {_Q}": _add,
    f"{_Q}::add(int) -> {_Q}": _add,
    f"{_Q}::sub({_Q}) -> {_Q}": _sub,
    f"{_Q}::sub(int) -> {_Q}": _sub,
    f"{_Q}::isGreaterThan({_Q}) -> bool": lambda one, other: one.nanos > other.nanos,
    f"{_Q}::isLessThan({_Q}) -> bool": lambda one, other: one.nanos < other.nanos,
    f"{_Q}::compareTo({_Q}) -> int": lambda one, other: _sign(one.nanos - other.nanos),
}
