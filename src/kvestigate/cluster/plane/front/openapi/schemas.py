"""Schemas of built-in and custom types, in either version of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from kvestigate.cluster.plane.front.openapi import descriptions
from kvestigate.cluster.plane.kinds.custom.parts import EMBEDDED, INT_OR_STRING, PRESERVE
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.kube import choices, facts
from kvestigate.kube.choices import Said
from kvestigate.kube.facts import Definition, Field, Ownership, Type

Json = dict[str, Any]
GVK = "x-kubernetes-group-version-kind"

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META, LIST_META = f"{META}.ObjectMeta", f"{META}.ListMeta"

_SCALARS: dict[Type, Json] = {
    Type.STRING: {"type": "string"},
    Type.BYTES: {"type": "string", "format": "byte"},
    Type.TIME: {"type": "string", "format": "date-time"},
    Type.MICROTIME: {"type": "string", "format": "date-time"},
    Type.BOOLEAN: {"type": "boolean"},
    Type.QUANTITY: {"type": "string"},
    Type.INT32: {"type": "integer", "format": "int32"},
    Type.INT64: {"type": "integer", "format": "int64"},
    Type.NUMBER: {"type": "number", "format": "double"},
    Type.INT_OR_STRING: {"type": "string", "format": "int-or-string"},
    Type.OBJECT: {"type": "object"},
    Type.ANY: {},
}


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """The differences between the two versions of OpenAPI."""

    base: str
    """The prefix of the name in a reference."""
    wraps: bool
    """Whether a reference inside another schema is wrapped in `allOf`."""
    defaults: bool
    """Whether schemas have defaults; not in version 2, whose clients would send them."""
    unions: dict[Type, Json]
    """Scalars of more than one type, which version 2 cannot express."""

    def reference(self, name: str) -> Json:
        return {"$ref": self.base + name}

    def constraints(self, known: Mapping[str, Any]) -> Json:
        """The enum, default and so on of a field, as far as this version has them."""
        return {key: value for key, value in known.items() if self.defaults or key != "default"}

    def inner(self, name: str) -> Json:
        return {"allOf": [self.reference(name)]} if self.wraps else self.reference(name)


V2 = Dialect("#/definitions/", wraps=False, defaults=False, unions={})
V3 = Dialect(
    "#/components/schemas/",
    wraps=True,
    defaults=True,
    unions={
        Type.QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
        Type.INT_OR_STRING: {
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        },
    },
)


@cache
def builtin_text(name: str, dialect: Dialect) -> msgspec.Raw:
    """The schema of a built-in definition as JSON, which many documents share."""
    return msgspec.Raw(msgspec.json.encode(builtin(name, dialect)))


def builtin(name: str, dialect: Dialect) -> Json:
    """The schema of a definition in the facts table."""
    definition = facts.definition(name)
    texts = descriptions.of(name)
    if definition.scalar is not None:
        return _described(texts.description, _scalar(definition.scalar, dialect))
    schema = _described(texts.description, {"type": "object"})
    if definition.required:
        schema["required"] = list(definition.required)
    constraints = choices.of(name)
    schema["properties"] = {
        key: _described(texts.field(key), _field(field, dialect, key, constraints))
        for key, field in definition.fields.items()
    }
    schema.update(dialect.constraints(constraints.get("", {})))
    if (kinds := facts.kinds().get(name)) is not None:
        group, version, kind = kinds
        schema[GVK] = [{"group": group, "kind": kind, "version": version}]
    if definition.ownership is Ownership.WHOLE:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def reachable(names: Iterable[str]) -> list[str]:
    """These definitions and all that they refer to, sorted."""
    seen: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += _references(facts.definition(name))
    return sorted(seen)


def custom_name(kind: Kind) -> str:
    """The name of the schema of a custom kind: `io.example.v1.Widget`."""
    resource = kind.resource
    reverse = ".".join(reversed(resource.group.split(".")))
    return f"{reverse}.{resource.version}.{resource.kind}"


def custom(kind: Kind, dialect: Dialect) -> Json:
    """The schema of a custom kind, with the fields that every object has."""
    resource = kind.resource
    gvk = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    schema = kind.schema or {"type": "object"}
    if dialect is V2 and schema.get(PRESERVE):
        # kubectl refuses fields beside those that it is told of, so it is told of none.
        return {"type": "object", GVK: [gvk]}
    shown = _shown(schema, dialect)
    properties = {**shown.get("properties", {}), **_object_fields(dialect)}
    return {"type": "object", **shown, "properties": properties, GVK: [gvk]}


def custom_list(kind: Kind, dialect: Dialect) -> Json:
    resource = kind.resource
    gvk = {"group": resource.group, "kind": f"{resource.kind}List", "version": resource.version}
    fields = _object_fields(dialect)
    meta = _described(descriptions.of(_LIST).field("metadata"), dialect.inner(LIST_META))
    items = {"type": "array", "items": dialect.reference(custom_name(kind))}
    return {
        "description": f"{resource.kind}List is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": fields["apiVersion"],
            "items": {"description": f"List of {resource.plural}.", **items},
            "kind": fields["kind"],
            "metadata": meta,
        },
        GVK: [gvk],
    }


_ANY, _LIST = "io.k8s.api.core.v1.ConfigMap", "io.k8s.api.core.v1.PodList"
"""Definitions whose own fields are described as those of any object and of any list."""


def _object_fields(dialect: Dialect) -> Json:
    texts = descriptions.of(_ANY)
    fields = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": dialect.inner(OBJECT_META),
    }
    return {name: _described(texts.field(name), schema) for name, schema in fields.items()}


# Keywords that version 2 does not have; a schema without them allows more, never less.
_VERSION_3_ONLY: tuple[str, ...] = ("oneOf", "anyOf", "allOf", "not", "nullable", "default")
_CONTENT = ("type", "items", "properties", "additionalProperties")


def _shown(schema: Mapping[str, Any], dialect: Dialect) -> Json:
    """The schema of a value as clients are told it."""
    shown = dict(schema)
    if dialect is V2:
        hidden = _VERSION_3_ONLY
        if schema.get("nullable") or schema.get(PRESERVE):
            hidden += _CONTENT  # kubectl would refuse null, or fields that it is not told of
        shown = {key: value for key, value in schema.items() if key not in hidden}
    elif schema.get(INT_OR_STRING) and not schema.keys() & {"anyOf", "allOf"}:
        shown["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if isinstance(properties := shown.get("properties"), dict):
        shown["properties"] = {name: _shown(inner, dialect) for name, inner in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(inner := shown.get(key), dict):
            shown[key] = _shown(inner, dialect)
    if schema.get(EMBEDDED) and "type" in shown:
        required = [name for name in shown.get("required", ()) if name not in _IDENTITY]
        shown["required"] = [*required, *_IDENTITY]
        shown["properties"] = {**shown.get("properties", {}), **_object_fields(dialect)}
    return shown


_IDENTITY = ("kind", "apiVersion")


def _described(text: str, schema: Json) -> Json:
    return {"description": text, **schema} if text else schema


def _field(field: Field, dialect: Dialect, path: str, constraints: Said) -> Json:
    """The schema of the field at `path`, with the constraints of its definition by path."""
    if field.type is Type.DEFINED:
        alone = path not in constraints and path.endswith(("[]", "{}"))
        schema = (dialect.reference if alone else dialect.inner)(field.definition)
    elif field.element is None:
        schema = _scalar(field.type, dialect)
    elif field.type is Type.LIST:
        items = _field(field.element, dialect, f"{path}[]", constraints)
        schema = {"type": "array", "items": items}
    else:
        values = _field(field.element, dialect, f"{path}{{}}", constraints)
        schema = {"type": "object", "additionalProperties": values}
    schema.update(dialect.constraints(constraints.get(path, {})))
    if field.topology:
        collection = "list" if field.type in (Type.LIST, Type.BYTES) else "map"
        schema[f"x-kubernetes-{collection}-type"] = field.topology
    if field.keys:
        schema["x-kubernetes-list-map-keys"] = list(field.keys)
    if field.merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.strategies:
        schema["x-kubernetes-patch-strategy"] = ",".join(field.strategies)
    return schema


def _scalar(type_: Type, dialect: Dialect) -> Json:
    return dict(dialect.unions.get(type_) or _SCALARS[type_])


def _references(definition: Definition) -> Iterator[str]:
    for field in definition.fields.values():
        inner = field
        while inner.element is not None:
            inner = inner.element
        if inner.type is Type.DEFINED:
            yield inner.definition
