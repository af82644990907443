"""Objects at whose form a server need not look twice: they fit their type and are normal already.

Nearly all that clients send is so, but for the structs that Go always writes and people leave
out. As in `kube.strict`, each definition becomes a msgspec Struct, so that one conversion in C
answers for the whole tree; here its fields take nothing that `kube.normal` would change. What
is left to do is a walk along the few paths that lead to such structs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import is_
from typing import Annotated, Any

import msgspec

from kvestigate.kube import facts, normal, strict
from kvestigate.kube.facts import Type
from kvestigate.kube.normal import Declaration

Complete = Callable[[Any], Any]
"""Gives the value with the structs that it lacks: the very same one if it lacks none."""


class _True:
    """Stands for `true`, where `false` is left out."""


_TRUE = _True()


def _only_true(type_: type, value: Any) -> Any:
    if value is not True:
        raise ValueError("not true")
    return _TRUE


_QUANTITY = (
    r"^(?:0|[1-9][0-9]{0,2}[numkMGTP]?|[1-9][0-9]{0,2}[KMGT]i"
    r"|[1-9][0-9]{0,5}(?!000)[0-9]{3}[num]?)$"
)
_SCALARS: dict[Type, Any] = {
    **strict.SCALARS,
    Type.QUANTITY: Annotated[str, msgspec.Meta(pattern=_QUANTITY)],
    Type.TIME: Annotated[str, msgspec.Meta(pattern=rf"{strict.MOMENT}Z$")],
    Type.OBJECT: bool | int | float | str | list | dict,
    Type.ANY: bool | int | float | str | list | dict,
}
_FILLED: dict[Type, Any] = {
    Type.STRING: Annotated[str, msgspec.Meta(min_length=1)],
    Type.BYTES: Annotated[str, msgspec.Meta(pattern=strict.BYTES, min_length=1)],
    Type.BOOLEAN: _True,
    Type.INT32: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)],
    Type.INT64: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)],
    Type.NUMBER: Annotated[float, msgspec.Meta(gt=0)],
}
"""Of fields that are left out when there is nothing in them; negative numbers are rare."""


def tidied(value: dict[str, Any], of: facts.Definition) -> dict[str, Any] | None:
    """The object in its normal form; None if it takes more than a glance to tell."""
    plan = _plan(of.name)
    if plan is None:
        return None
    struct, complete = plan
    try:
        msgspec.convert(value, struct, dec_hook=_only_true)
    except (msgspec.ValidationError, ValueError):
        return None
    whole: dict[str, Any] = complete(value)
    return whole


@cache
def _plan(name: str) -> tuple[Any, Complete] | None:
    try:
        return _struct(name, ()), _completion(name) or _as_it_is
    except _Recursive:
        return None


class _Recursive(Exception):
    """A definition holds itself, which no Struct made this way can."""


_structs: dict[str, Any] = {}


def _struct(name: str, inside: tuple[str, ...]) -> Any:
    if name in inside:
        raise _Recursive(name)
    if name not in _structs:
        definition = facts.definition(name)
        _structs[name] = (
            _SCALARS[definition.scalar]
            if definition.scalar is not None
            else _make(definition, (*inside, name))
        )
    return _structs[name]


def _make(definition: facts.Definition, inside: tuple[str, ...]) -> Any:
    declared = normal.declaration(definition.name)
    members: list[Any] = []
    for number, (name, field) in enumerate(definition.fields.items()):
        # What is always written must be there, unless it is a struct that can be filled in.
        required = name in declared.present and not _is_struct(field)
        default = {} if required else {"default": msgspec.UNSET}
        members.append(
            (
                f"f{number}",
                _member(field, declared, name, inside),
                msgspec.field(name=name, **default),
            )
        )
    return msgspec.defstruct(
        definition.name.rsplit(".", 1)[1],
        members,
        forbid_unknown_fields=True,
        kw_only=True,
        gc=False,
    )


def _member(field: facts.Field, declared: Declaration, name: str, inside: tuple[str, ...]) -> Any:
    droppable = name in declared.droppable
    if field.element is None:
        return _FILLED[normal.type_of(field)] if droppable else _value(field, inside)
    held = _value(field, inside)
    if droppable or name in declared.present:
        return Annotated[held, msgspec.Meta(min_length=1)]
    return held


def _value(field: facts.Field, inside: tuple[str, ...]) -> Any:
    if field.type is Type.DEFINED:
        return _struct(field.definition, inside)
    if field.element is None:
        return _SCALARS[field.type]
    element = _value(field.element, inside)
    return list[element] if field.type is Type.LIST else dict[str, element]  # type: ignore[valid-type] # made at run time


def _is_struct(field: facts.Field) -> bool:
    return normal.type_of(field) is Type.DEFINED


# -- filling in --------------------------------------------------------------------------


@cache
def _completion(name: str) -> Complete | None:
    """What completes the values of a definition; None if they lack nothing."""
    definition = facts.definition(name)
    if definition.scalar is not None:
        return None
    present = normal.declaration(name).present
    structs = [each for each in present if _is_struct(definition.fields[each])]
    inner = {
        field: complete
        for field, of in definition.fields.items()
        if (complete := _completion_of(of)) is not None
    }
    if not structs and not inner:
        return None
    zeros = {each: normal.Zero(definition.fields[each]) for each in structs}
    return _Completion(zeros, inner)


def _completion_of(field: facts.Field) -> Complete | None:
    if field.element is not None:
        each = _completion_of(field.element)
        if each is None:
            return None
        return _each_of_list(each) if field.type is Type.LIST else _each_of_map(each)
    return _completion(field.definition) if field.type is Type.DEFINED else None


class _Completion:
    """Completes the objects of one definition."""

    __slots__ = ("_inner", "_zeros")

    def __init__(self, zeros: dict[str, normal.Zero], inner: dict[str, Complete]) -> None:
        self._zeros = tuple(zeros.items())
        self._inner = inner

    def __call__(self, value: dict[str, Any]) -> dict[str, Any]:
        whole = value
        for name in self._inner.keys() & value.keys():
            before = value[name]
            after = self._inner[name](before)
            if after is not before:
                whole = value.copy() if whole is value else whole
                whole[name] = after
        for name, zero in self._zeros:
            if name not in value:
                whole = value.copy() if whole is value else whole
                whole[name] = zero()
        return whole


def _as_it_is(value: Any) -> Any:
    return value


def _each_of_list(complete: Complete) -> Complete:
    def complete_all(value: list[Any]) -> list[Any]:
        whole = [complete(each) for each in value]
        return value if all(map(is_, whole, value)) else whole

    return complete_all


def _each_of_map(complete: Complete) -> Complete:
    def complete_all(value: dict[str, Any]) -> dict[str, Any]:
        whole = {key: complete(each) for key, each in value.items()}
        return value if all(map(is_, whole.values(), value.values())) else whole

    return complete_all
