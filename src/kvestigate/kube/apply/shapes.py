"""How server-side apply divides the values of a type among owners.

A `Shape` is made from the facts of a built-in type or from the structural schema of a custom
resource; whoever walks over an object sees no difference.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any

from kvestigate.kube import facts, normal
from kvestigate.kube.apply.fieldset import LEAF, SELF, FieldSet
from kvestigate.kube.facts import KEY_DEFAULTS, Definition, Field, Ownership, Type

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class Scalar(enum.Enum):
    STRING = "string"
    NUMBER = "numeric (int or float)"
    BOOLEAN = "boolean"
    ANY = "any scalar"


class Shape:
    """The division of one type. Fields are made when they are first looked at: types recurse."""

    def __init__(
        self,
        ownership: Ownership,
        *,
        accepts: tuple[type | Scalar, ...],
        fields: Callable[[], dict[str, Shape]] | None = None,
        element: Shape | None = None,
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
        empty: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self.ownership = ownership
        self.is_whole = ownership is Ownership.WHOLE
        self.is_divided = ownership is Ownership.FIELDS
        self.is_keyed = ownership is Ownership.KEYED
        self.is_listed = self.is_keyed or ownership is Ownership.SET
        self.accepts = accepts
        """`dict`, `list` or a kind of scalar: what a value may be."""
        self.element = element
        """What a list holds, or an object under names that are not in `fields`; None: nothing."""
        self.keys = tuple(sorted(keys))
        self.key = keys[0] if self.is_keyed and len(keys) == 1 else ""
        """The only one, if that is so."""
        self.defaults = defaults or {}
        """What a key means that an element leaves out."""
        self.layouts: dict[tuple[str, ...], Layout] = {}
        """What walks have learnt of objects with some names in them."""
        self._make_fields = fields
        self._make_empty = empty

    @cached_property
    def empty(self) -> dict[str, Any]:
        """The object of which nothing was said; not to be changed."""
        return self._make_empty()

    @cached_property
    def fields(self) -> dict[str, Shape]:
        """The fields that the type names."""
        return {} if self._make_fields is None else self._make_fields()


class Layout:
    """What objects of a shape have in common that have the same names in them."""

    __slots__ = ("divided", "leaves")

    def __init__(self, shape: Shape, names: tuple[str, ...]) -> None:
        self.leaves: FieldSet = {SELF: LEAF, **{f"f:{name}": LEAF for name in names}}
        """The set, as long as there is nothing in the fields; not to be changed."""
        self.divided = tuple(_divided(shape, names))
        """The fields in which there may be something that has owners of its own."""


def _divided(shape: Shape, names: tuple[str, ...]) -> Iterator[tuple[str, str, Shape]]:
    fields, element = shape.fields, shape.element
    if not fields and (element is None or element.is_whole):
        return
    for name in names:
        child = fields.get(name, element)
        if child is not None and not child.is_whole:
            yield name, f"f:{name}", child


def _anything() -> Shape:
    """Objects by field, all the way down; lists and scalars whole."""
    shape = Shape(Ownership.FIELDS, accepts=(Scalar.ANY, list, dict))
    shape.element = shape
    return shape


DEDUCED = _anything()
"""Of what no schema describes."""

_SCALARS = {
    Type.STRING: Scalar.STRING,
    Type.BYTES: Scalar.STRING,
    Type.TIME: Scalar.STRING,
    Type.MICROTIME: Scalar.STRING,
    Type.BOOLEAN: Scalar.BOOLEAN,
    Type.INT32: Scalar.NUMBER,
    Type.INT64: Scalar.NUMBER,
    Type.NUMBER: Scalar.NUMBER,
    Type.QUANTITY: Scalar.ANY,
    Type.INT_OR_STRING: Scalar.ANY,
}
_WHOLE = {scalar: Shape(Ownership.WHOLE, accepts=(scalar,)) for scalar in Scalar}

# Of a raw object upstream knows only that it is there.
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"


@cache
def of_definition(name: str) -> Shape:
    """The shape of a built-in type."""
    definition = facts.definition(name)
    if name == _RAW:
        return Shape(Ownership.WHOLE, accepts=(Scalar.ANY, dict))
    if definition.scalar in (Type.OBJECT, Type.ANY):
        return DEDUCED
    if definition.scalar is not None:
        return _WHOLE[_SCALARS[definition.scalar]]
    return _struct(definition, definition.ownership)


def _struct(definition: Definition, ownership: Ownership) -> Shape:
    return Shape(
        ownership,
        accepts=(dict,),
        fields=lambda: {field: _of_field(of) for field, of in definition.fields.items()},
        empty=lambda: normal.empty(definition),
    )


def _of_field(field: Field) -> Shape:
    if field.type is Type.DEFINED:
        definition = facts.definition(field.definition)
        if field.ownership is definition.ownership:
            return of_definition(field.definition)
        return _struct(definition, field.ownership)
    if field.type is Type.LIST:
        return _list_of(field)
    if field.type is Type.MAP:
        assert field.element is not None
        return Shape(field.ownership, accepts=(dict,), element=_of_field(field.element))
    if field.type in (Type.OBJECT, Type.ANY):
        return DEDUCED
    return _WHOLE[_SCALARS[field.type]]


def _list_of(field: Field) -> Shape:
    assert field.element is not None
    element = _of_field(field.element)
    defaults: dict[str, Any] = {}
    if field.keys:
        # A key that is always written cannot be left out: it is empty then.
        always = {"name": ""} if field.element.definition == _REFERENCE else element.empty
        known = {**always, **KEY_DEFAULTS}
        defaults = {key: known[key] for key in field.keys if key in known}
    return Shape(
        field.ownership,
        accepts=(list,),
        element=element,
        keys=field.keys,
        defaults=defaults,
    )


# Its name is optional, and empty by default.
_REFERENCE = "io.k8s.api.core.v1.LocalObjectReference"


def of_schema(schema: Mapping[str, Any]) -> Shape:
    """The shape of a custom resource with this structural schema."""
    shape = _of_schema(schema, keeps_unknown=False)
    shape.fields.update(_of_every_object())
    return shape


def _of_every_object() -> dict[str, Shape]:
    text = _WHOLE[Scalar.STRING]
    return {"metadata": of_definition(OBJECT_META), "apiVersion": text, "kind": text}


_SCHEMA_SCALARS = {
    "string": Scalar.STRING,
    "boolean": Scalar.BOOLEAN,
    "integer": Scalar.NUMBER,
    "number": Scalar.NUMBER,
}


def _of_schema(schema: Mapping[str, Any], *, keeps_unknown: bool) -> Shape:
    keeps_unknown = keeps_unknown or schema.get("x-kubernetes-preserve-unknown-fields") is True
    type_ = schema.get("type") or ""
    if schema.get("x-kubernetes-int-or-string"):
        return _WHOLE[Scalar.ANY]
    if type_ == "string" and schema.get("format") not in (None, "", "byte"):
        return _WHOLE[Scalar.ANY]
    if type_ in _SCHEMA_SCALARS:
        return _WHOLE[_SCHEMA_SCALARS[type_]]
    if type_ == "array":
        return _array(schema, keeps_unknown=keeps_unknown)
    accepts = (dict,) if type_ == "object" else (Scalar.ANY, list, dict)
    return _object(schema, accepts, keeps_unknown=keeps_unknown)


def _object(
    schema: Mapping[str, Any], accepts: tuple[type | Scalar, ...], *, keeps_unknown: bool
) -> Shape:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    element: Shape | None = None
    if isinstance(others, dict):
        element = _of_schema(others, keeps_unknown=keeps_unknown)
    elif others or (others is None and (keeps_unknown or not properties)):
        element = DEDUCED
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    return Shape(
        Ownership.WHOLE if schema.get("x-kubernetes-map-type") == "atomic" else Ownership.FIELDS,
        accepts=accepts,
        fields=lambda: {
            **{
                name: _of_schema(inner, keeps_unknown=keeps_unknown)
                for name, inner in properties.items()
            },
            **(_of_every_object() if embedded else {}),
        },
        element=element,
    )


def _array(schema: Mapping[str, Any], *, keeps_unknown: bool) -> Shape:
    items = schema.get("items") or {}
    kind = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    properties = items.get("properties") or {}
    return Shape(
        {"set": Ownership.SET, "map": Ownership.KEYED}.get(kind or "", Ownership.WHOLE),
        accepts=(list,),
        element=_of_schema(items, keeps_unknown=keeps_unknown),
        keys=keys,
        defaults={
            key: properties[key]["default"]
            for key in keys
            if properties.get(key, {}).get("default") is not None
        },
    )
