"""An object as a server keeps it: what decoding it into its type and back would change.

Unknown fields and nulls go, quantities and times take their canonical form. What depends on
how Go declares a field (an optional `""` or `false` that is left out again) is in no schema
and not done here. The object must have no mistyped values: see `kube.schema`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from typing import Any

from kvestigate.kube import facts, quantities
from kvestigate.kube.facts import Field, Type

Normalise = Callable[[Any], Any]
"""Gives the value in its normal form: the very same object if it already is."""

_ZEROS: dict[Type, Any] = {
    Type.STRING: "",
    Type.BYTES: "",
    Type.BOOLEAN: False,
    Type.QUANTITY: "0",
    Type.INT32: 0,
    Type.INT64: 0,
    Type.NUMBER: 0,
    Type.INT_OR_STRING: 0,
}


def normalised(value: Any, of: facts.Definition) -> Any:
    """The object in its normal form; what is normal already is shared, not copied."""
    return _Object(of.name)(value)


class _Object:
    """Normalises the objects of one definition. Its plan is made late: a type may hold itself."""

    __slots__ = ("_name", "_plan")

    def __init__(self, name: str) -> None:
        self._name = name
        self._plan: dict[str, Normalise | None] | None = None

    def __call__(self, value: dict[str, Any]) -> dict[str, Any]:
        plan = self._plan
        if plan is None:
            plan = self._plan = _plan(self._name)
        changes: dict[str, Any] = {}
        for field, inner in value.items():
            if inner is None or field not in plan:
                changes[field] = None
                continue
            normalise = plan[field]
            if normalise is not None:
                kept = normalise(inner)
                if kept is not inner:
                    changes[field] = kept
        if not changes:
            return value
        return {field: kept for field, kept in {**value, **changes}.items() if kept is not None}


@cache
def _plan(name: str) -> dict[str, Normalise | None]:
    """How to normalise each field of a definition; None for what always is normal."""
    return {field: _normaliser(of) for field, of in facts.definition(name).fields.items()}


def _normaliser(field: Field) -> Normalise | None:
    if field.element is not None:
        each = _normaliser(field.element)
        zero = _zero(field.element)
        return partial(_list if field.type is Type.LIST else _map, each, zero)
    if field.type is not Type.DEFINED:
        return _SCALARS.get(field.type)
    scalar = facts.definition(field.definition).scalar
    if scalar is None:
        return _Object(field.definition)
    return _SCALARS.get(scalar)


def _zero(field: Field) -> Any:
    """What Go makes of a null in a list or map."""
    if field.type is not Type.DEFINED:
        return _ZEROS.get(field.type)
    scalar = facts.definition(field.definition).scalar
    return {} if scalar is None else _ZEROS.get(scalar)


def _list(each: Normalise | None, zero: Any, value: list[Any]) -> list[Any]:
    if each is None:
        return [zero if inner is None else inner for inner in value] if None in value else value
    kept = value
    for position, inner in enumerate(value):
        new = zero if inner is None else each(inner)
        if new is not inner:
            kept = list(value) if kept is value else kept
            kept[position] = new
    return kept


def _map(each: Normalise | None, zero: Any, value: dict[str, Any]) -> dict[str, Any]:
    if each is None:
        if None not in value.values():
            return value
        return {key: zero if inner is None else inner for key, inner in value.items()}
    changes = {}
    for key, inner in value.items():
        new = zero if inner is None else each(inner)
        if new is not inner:
            changes[key] = new
    return {**value, **changes} if changes else value


def _quantity(value: Any) -> Any:
    canonical = _quantity_text(value)
    return value if canonical == value else canonical


# The same few amounts are asked for again and again.
@lru_cache(maxsize=4096)
def _quantity_text(value: str | int | float) -> str:
    return str(quantities.parse(value.strip() if isinstance(value, str) else value))


_LENGTHS = {
    "seconds": len("2026-01-01T00:00:00Z"),
    "microseconds": len("2026-01-01T00:00:00.000000Z"),
}


def _time(precision: str, value: str) -> str:
    if value[-1] == "Z" and len(value) == _LENGTHS[precision]:
        return value
    moment = datetime.fromisoformat(value).astimezone(UTC)
    canonical = f"{moment.replace(tzinfo=None).isoformat(timespec=precision)}Z"
    return value if canonical == value else canonical


_SCALARS: dict[Type, Normalise] = {
    Type.QUANTITY: _quantity,
    Type.TIME: partial(_time, "seconds"),
    Type.MICROTIME: partial(_time, "microseconds"),
}
