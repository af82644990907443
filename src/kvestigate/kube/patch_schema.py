"""The facts table as strategic merge patch asks for it."""

from __future__ import annotations

from functools import cache

from kvestigate.kube import facts
from kvestigate.kube.facts import Definition, Field, Type
from kvestigate.kube.patches.strategic import UNTYPED, PatchField, PatchSchema

_NO_LIST = "expected slice or array type, but got: struct"


class TypedSchema:
    """How the fields of a built-in type are patched."""

    __slots__ = ("_definition", "_fields")

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._fields: dict[str, PatchField] = {}

    def field(self, name: str) -> PatchField:
        known = self._fields.get(name)
        if known is None:
            field = self._definition.fields.get(name)
            if field is None:
                return self._unknown(name)
            known = self._fields[name] = _patch_field(field)
        return known

    def _unknown(self, name: str) -> PatchField:
        struct = self._definition.name.rpartition(".")[2]
        why = f'unable to find api field in struct {struct} for the json field "{name}"'
        return PatchField(unordered=why)


class MapSchema:
    """How the entries of a map are patched: all alike."""

    __slots__ = ("_entry",)

    def __init__(self, entry: Field) -> None:
        self._entry = _patch_field(entry)

    def field(self, name: str) -> PatchField:
        return self._entry


@cache
def patch_schema(definition: str) -> PatchSchema:
    """The schema of a definition, given by name: `io.k8s.api.core.v1.Pod`."""
    known = facts.definition(definition)
    return UNTYPED if known.scalar is not None else TypedSchema(known)


def for_kind(group: str, version: str, kind: str) -> PatchSchema:
    """The schema of a kind; of one that is not built in, the schema of what has none."""
    definition = facts.for_kind(group, version, kind)
    return UNTYPED if definition is None else patch_schema(definition.name)


def _patch_field(field: Field) -> PatchField:
    unordered = "" if field.type is Type.LIST else _NO_LIST
    return PatchField(field.strategies, field.merge_key, _value_schema(field), unordered)


def _value_schema(field: Field) -> PatchSchema:
    if field.type is Type.DEFINED:
        return patch_schema(field.definition)
    if field.element is None:
        return UNTYPED
    return MapSchema(field.element) if field.type is Type.MAP else _value_schema(field.element)
