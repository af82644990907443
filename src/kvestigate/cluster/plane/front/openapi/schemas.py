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
    """Where the two versions differ."""

    base: str
    """Goes before the name in a reference."""
    wraps: bool
    """A reference inside another schema is wrapped in `allOf`."""
    defaults: bool
    """Version 2 tells none: old clients took them for what they have to send."""
    unions: dict[Type, Json]
    """Scalars of more than one type, which version 2 cannot say."""

    def reference(self, name: str) -> Json:
        return {"$ref": self.base + name}

    def told(self, said: Mapping[str, Any]) -> Json:
        """What is known of a field's values, as far as this version tells it."""
        return {key: value for key, value in said.items() if self.defaults or key != "default"}

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
    """The same as JSON, which many documents have in common."""
    return msgspec.Raw(msgspec.json.encode(builtin(name, dialect)))


def builtin(name: str, dialect: Dialect) -> Json:
    """The schema of a definition in the facts table."""
    definition = facts.definition(name)
    if definition.scalar is not None:
        return _scalar(definition.scalar, dialect)
    schema: Json = {"type": "object"}
    if definition.required:
        schema["required"] = list(definition.required)
    said = choices.of(name)
    schema["properties"] = {
        key: _field(field, dialect, key, said) for key, field in definition.fields.items()
    }
    schema.update(dialect.told(said.get("", {})))
    if (kinds := facts.kinds().get(name)) is not None:
        group, version, kind = kinds
        schema[GVK] = [{"group": group, "kind": kind, "version": version}]
    if definition.ownership is Ownership.WHOLE:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def reachable(names: Iterable[str]) -> list[str]:
    """The definitions that these refer to and they themselves, sorted."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _references(facts.definition(name))
    return sorted(seen)


def custom_name(kind: Kind) -> str:
    """`io.example.v1.Widget`: what the schema of a custom kind is called."""
    resource = kind.resource
    reverse = ".".join(reversed(resource.group.split(".")))
    return f"{reverse}.{resource.version}.{resource.kind}"


def custom(kind: Kind, dialect: Dialect) -> Json:
    """The schema of a custom kind: its own, with what every object has."""
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


# What version 2 has no word for; a schema without them allows more, never less.
_NEW = ("oneOf", "anyOf", "allOf", "not", "nullable", "x-kubernetes-validations")


def _lowered(schema: Any) -> Any:
    """A version 3 schema as far as version 2 can say it."""
    if not isinstance(schema, dict):
        return schema
    found = {key: value for key, value in schema.items() if key not in _NEW}
    if isinstance(found.get("properties"), dict):
        found["properties"] = {name: _lowered(inner) for name, inner in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = _lowered(found[key])
    return found


def _field(field: Field, dialect: Dialect, path: str, said: Said) -> Json:
    """`path` is where in the definition the field is, `said` what is known of its values."""
    if field.type is Type.DEFINED:
        alone = path not in said and path.endswith(("[]", "{}"))
        schema = (dialect.reference if alone else dialect.inner)(field.definition)
    elif field.element is None:
        schema = _scalar(field.type, dialect)
    elif field.type is Type.LIST:
        items = _field(field.element, dialect, f"{path}[]", said)
        schema = {"type": "array", "items": items}
    else:
        values = _field(field.element, dialect, f"{path}{{}}", said)
        schema = {"type": "object", "additionalProperties": values}
    schema.update(dialect.told(said.get(path, {})))
    if field.topology:
        about = "list" if field.type in (Type.LIST, Type.BYTES) else "map"
        schema[f"x-kubernetes-{about}-type"] = field.topology
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
