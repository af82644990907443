"""Schemas of built-in and custom types, in either version of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

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
    if definition.scalar is not None:
        return _scalar(definition.scalar, dialect)
    schema: Json = {"type": "object"}
    if definition.required:
        schema["required"] = list(definition.required)
    constraints = choices.of(name)
    schema["properties"] = {
        key: _field(field, dialect, key, constraints) for key, field in definition.fields.items()
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
    schema = dict(kind.schema or {"type": "object"})
    if not dialect.wraps:
        schema = _lowered(schema)
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        **schema.get("properties", {}),
        "metadata": dialect.inner(OBJECT_META),
    }
    gvk = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    return {"type": "object", **schema, "properties": properties, GVK: [gvk]}


def custom_list(kind: Kind, dialect: Dialect) -> Json:
    resource = kind.resource
    gvk = {"group": resource.group, "kind": f"{resource.kind}List", "version": resource.version}
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": dialect.reference(custom_name(kind))},
            "kind": {"type": "string"},
            "metadata": dialect.inner(LIST_META),
        },
        GVK: [gvk],
    }


# Keywords that version 2 does not have; a schema without them allows more, never less.
_VERSION_3_ONLY = ("oneOf", "anyOf", "allOf", "not", "nullable", "x-kubernetes-validations")


def _lowered(schema: Any) -> Any:
    """A version 3 schema as far as version 2 can express it."""
    if not isinstance(schema, dict):
        return schema
    lowered = {key: value for key, value in schema.items() if key not in _VERSION_3_ONLY}
    properties = lowered.get("properties")
    if isinstance(properties, dict):
        lowered["properties"] = {name: _lowered(inner) for name, inner in properties.items()}
    for key in ("items", "additionalProperties"):
        if key in lowered:
            lowered[key] = _lowered(lowered[key])
    return lowered


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
