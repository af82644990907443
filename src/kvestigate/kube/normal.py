"""An object as a server keeps it: what decoding it into its type and back would change.

Unknown fields and nulls go, quantities and times take their canonical form, and so does what
is empty: Go leaves an optional `""`, `false` or `[]` out again unless it is declared behind a
pointer, and always writes a struct. How each field is declared is in no schema; `zeros.json`
beside this file says it (see `tools/zeros.py`). The object must have no mistyped values: see
`kube.schema`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kvestigate.kube import facts, quantities
from kvestigate.kube.facts import Field, Type

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

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
# What an optional field of these types is left out for, if nothing is behind a pointer.
_DROPPED = frozenset(
    {
        Type.STRING,
        Type.BYTES,
        Type.BOOLEAN,
        Type.INT32,
        Type.INT64,
        Type.NUMBER,
        Type.LIST,
        Type.MAP,
    }
)


def normalised(value: dict[str, Any], of: facts.Definition) -> dict[str, Any]:
    """The object in its normal form; what is normal already is shared, not copied."""
    return _object(of.name)(value)


def empty(of: facts.Definition) -> dict[str, Any]:
    """The object of which nothing was said: what is always written, and nothing else."""
    return _object(of.name)({})


def empty_field(of: facts.Definition, name: str) -> Any:
    """What of that object is in one of its fields; None if nothing is."""
    return _object(of.name).empty_field(name)


def _unknown(value: Any) -> Any:
    """Stands for fields that a type does not have, and is never called."""
    raise AssertionError(value)


class _Object:
    """Normalises the objects of one definition. Its plan is made late: a type may hold itself."""

    __slots__ = ("_droppable", "_name", "_plan", "_present")

    def __init__(self, name: str) -> None:
        self._name = name
        self._plan: dict[str, Normalise | None] | None = None
        self._droppable: frozenset[str] = frozenset()
        self._present: tuple[tuple[str, bool, Zero], ...] = ()
        """What is always written, whether it is a list or map, and what it is by default."""

    def __call__(self, value: dict[str, Any]) -> dict[str, Any]:
        plan = self._plan or self._prepare()
        droppable = self._droppable
        changes: dict[str, Any] = {}
        gone: list[str] = []
        for field, inner in value.items():
            normalise = plan.get(field, _unknown)
            if normalise is None and inner:  # nearly every field
                continue
            if normalise is _unknown or inner is None or (not inner and field in droppable):
                gone.append(field)
            elif normalise is not None:
                kept = normalise(inner)
                if kept is not inner:
                    changes[field] = kept
        for field, lists, zero in self._present:
            inner = value.get(field)
            if inner is None or (lists and not inner):
                changes[field] = zero()
        if not changes and not gone:
            return value
        made = {**value, **changes}
        for field in gone:
            if field not in changes:
                del made[field]
        return made

    def _prepare(self) -> dict[str, Normalise | None]:
        fields = facts.definition(self._name).fields
        declared = declaration(self._name)
        self._present = tuple(
            (name, _lists(fields[name]), Zero(fields[name])) for name in declared.present
        )
        self._droppable = declared.droppable
        self._plan = {name: _normaliser(field) for name, field in fields.items()}
        return self._plan

    def empty_field(self, name: str) -> Any:
        if self._plan is None:
            self._prepare()
        return next((zero() for field, _, zero in self._present if field == name), None)


class _Declared(msgspec.Struct, frozen=True):
    """How Go declares the fields of one definition."""

    present: str = msgspec.field(name="p", default="")
    """Always written."""
    kept: str = msgspec.field(name="k", default="")
    """Behind a pointer: written whenever it was sent."""


class Declaration(NamedTuple):
    """What Go does with the fields of one definition when it writes."""

    present: tuple[str, ...]
    """Always written."""
    droppable: frozenset[str]
    """Left out when there is nothing in them."""


@cache
def declaration(name: str) -> Declaration:
    declared = _declared().get(name, _Declared())
    present, kept = declared.present.split(), declared.kept.split()
    fields = facts.definition(name).fields
    droppable = frozenset(
        name
        for name, field in fields.items()
        if name not in present and name not in kept and type_of(field) in _DROPPED
    )
    return Declaration(tuple(present), droppable)


@cache
def _declared() -> dict[str, _Declared]:
    table = Path(__file__).with_name("zeros.json").read_bytes()
    return msgspec.json.decode(table, type=dict[str, _Declared])


@cache
def _object(name: str) -> _Object:
    return _Object(name)


def type_of(field: Field) -> Type:
    """The type, seen through definitions that only name a scalar."""
    if field.type is not Type.DEFINED:
        return field.type
    return facts.definition(field.definition).scalar or Type.DEFINED


def _lists(field: Field) -> bool:
    return field.element is not None


def _normaliser(field: Field) -> Normalise | None:
    if field.element is not None:
        normalise, zero = _normaliser(field.element), Zero(field.element)
        return partial(_list if field.type is Type.LIST else _map, normalise, zero)
    scalar = type_of(field)
    return _object(field.definition) if scalar is Type.DEFINED else _SCALARS.get(scalar)


class Zero:
    """What Go makes of a value that is not there: null for lists, maps and times."""

    __slots__ = ("_encoded", "_field")

    def __init__(self, field: Field) -> None:
        self._field = field
        self._encoded: bytes | None = None

    def __call__(self) -> Any:
        """One that the caller may change."""
        if self._encoded is None:
            self._encoded = _encode(self._make())
        return _decode(self._encoded)

    def _make(self) -> Any:
        type_ = type_of(self._field)
        if type_ is Type.DEFINED:
            return empty(facts.definition(self._field.definition))
        return _ZEROS.get(type_)


def _list(normalise: Normalise | None, zero: Zero, value: list[Any]) -> list[Any]:
    if normalise is None:
        if None not in value:
            return value
        return [zero() if inner is None else inner for inner in value]
    kept = value
    for position, inner in enumerate(value):
        new = zero() if inner is None else normalise(inner)
        if new is not inner:
            kept = list(value) if kept is value else kept
            kept[position] = new
    return kept


def _map(normalise: Normalise | None, zero: Zero, value: dict[str, Any]) -> dict[str, Any]:
    if normalise is None:
        if None not in value.values():
            return value
        return {key: zero() if inner is None else inner for key, inner in value.items()}
    changes = {}
    for key, inner in value.items():
        new = zero() if inner is None else normalise(inner)
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
