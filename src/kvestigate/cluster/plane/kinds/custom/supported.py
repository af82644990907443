"""What of OpenAPI a schema of a custom resource may use. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.custom import rule_checks
from kvestigate.cluster.plane.kinds.custom.parts import (
    EMBEDDED,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    alternatives,
    notable,
)
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause, Causes

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_META = ("metadata", "kind", "apiVersion")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in an object the value is that a schema describes."""

    root: bool = False
    meta: bool = False
    """Inside of what all objects have."""
    no_defaults: str = ""
    """Why nothing may have a default here."""

    def field(self, name: str, schema: Schema) -> _Place:
        if name not in _META or not (self.root or schema.get(EMBEDDED)):
            return replace(self, root=False)
        reason = f"in top-level {name}" if self.root else self.no_defaults
        return _Place(meta=True, no_defaults=reason)

    def entry(self) -> _Place:
        reason = "inside additionalProperties applying to object metadata"
        return replace(self, root=False, no_defaults=reason if self.meta else self.no_defaults)


def check(schema: Schema, path: str) -> Causes:
    yield from _check(schema, path, _Place(root=True))


def is_convertible(schema: Schema) -> bool:
    """Whether nothing keeps the schema from being looked at as a structural one."""
    if any(schema.get(key) for key in (*_UNSUPPORTED, "$schema")):
        return False
    if isinstance(schema.get("items"), list):
        return False
    inside = (*notable(schema, ""), *alternatives(schema, ""))
    return all(is_convertible(inner) for inner, _ in inside)


def _check(schema: Schema, path: str, place: _Place) -> Causes:
    yield from _standard(schema, path, place)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield causes.forbidden(f"{path}.uniqueItems", why)
    extra = schema.get("additionalProperties")
    if schema.get("properties") and (extra is False or isinstance(extra, dict)):
        why = "additionalProperties and properties are mutual exclusive"
        yield causes.forbidden(f"{path}.additionalProperties", why)
    yield from _inside(schema, path, place)
    if schema.get(PRESERVE) is False:
        yield causes.invalid(f"{path}.{PRESERVE}", False, "must be true or undefined")
    yield from _maps(schema, path)
    yield from _lists(schema, path)
    yield from rule_checks.forms(schema, path)


def _inside(schema: Schema, path: str, place: _Place) -> Causes:
    for inner, at in notable(schema, path):
        if at == f"{path}.additionalProperties":
            yield from _check(inner, at, place.entry())
        elif at == f"{path}.items":
            yield from _check(inner, at, replace(place, root=False))
        else:
            name = at.removeprefix(f"{path}.properties[").removesuffix("]")
            yield from _check(inner, at, place.field(name, schema))
    for inner, at in alternatives(schema, path):
        yield from _check(inner, at, replace(place, root=False))


def _standard(schema: Schema, path: str, place: _Place) -> Causes:
    type_ = schema.get("type")
    if type_ and type_ not in _TYPES:
        yield causes.unsupported(f"{path}.type", type_, _TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield causes.forbidden(f"{path}.default", f"must not be set {place.no_defaults}")
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield causes.forbidden(f"{path}.{key}", f"{key} is not supported")
    if type_ == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield causes.forbidden(f"{path}.type", why)
    if isinstance(schema.get("items"), list):
        why = "items must be a schema object and not an array"
        yield causes.forbidden(f"{path}.items", why)
    if place.meta and schema.get(EMBEDDED):
        why = "must not be used inside of resource meta"
        yield causes.forbidden(f"{path}.{EMBEDDED}", why)


# -- lists and maps --------------------------------------------------------------------------


def _wrong_type(schema: Schema, path: str, why: str) -> Cause:
    at, type_ = f"{path}.type", schema.get("type")
    return causes.invalid(at, type_, why) if type_ else causes.required(at, why)


def _maps(schema: Schema, path: str) -> Causes:
    map_type = schema.get(MAP_TYPE)
    if map_type is None:
        return
    if schema.get("type") != "object":
        yield _wrong_type(schema, path, f"must be object if {MAP_TYPE} is specified")
    yield from checks.choice(f"{path}.{MAP_TYPE}", map_type, ("atomic", "granular"))


def _lists(schema: Schema, path: str) -> Causes:
    list_type, keys = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or []
    items = schema.get("items")
    if list_type is not None and schema.get("type") != "array":
        yield _wrong_type(schema, path, f"must be array if {LIST_TYPE} is specified")
    elif list_type == "set" and isinstance(items, dict):
        yield from _whole(items, path)
    if list_type not in (None, "atomic", "set", "map"):
        yield causes.unsupported(f"{path}.{LIST_TYPE}", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        why = f"must be map if {LIST_KEYS} is non-empty"
        at = f"{path}.{LIST_TYPE}"
        yield causes.invalid(at, list_type, why) if list_type else causes.required(at, why)
    if list_type == "map":
        yield from _keyed(items, keys, path)
    if list_type in ("set", "map") and isinstance(items, dict):
        if items.get("nullable"):
            why = f"cannot be nullable when {LIST_TYPE} is {list_type}"
            yield causes.forbidden(f"{path}.items.nullable", why)
        if list_type == "map":
            yield from _key_values(items, keys, path)


def _whole(items: Schema, path: str) -> Causes:
    why = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE, "atomic") != "atomic":
        yield causes.invalid(f"{path}.items.{LIST_TYPE}", items[LIST_TYPE], why)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        # The value shown is that of the other field: so the server does.
        yield causes.invalid(f"{path}.items.{MAP_TYPE}", items.get(LIST_TYPE), why)


def _keyed(items: Any, keys: list[str], path: str) -> Causes:
    if not keys:
        why = f"must not be empty if {LIST_TYPE} is map"
        yield causes.required(f"{path}.{LIST_KEYS}", why)
    if items is None:
        yield causes.required(f"{path}.items", f"must have a schema if {LIST_TYPE} is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        why = f"must be object if parent array's {LIST_TYPE} is map"
        yield causes.invalid(f"{path}.items.type", items.get("type", ""), why)
        return
    fields = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in fields:
            why = "entries must all be names of item properties"
            yield causes.invalid(f"{path}.{LIST_KEYS}", keys, why)
        elif fields[key].get("type") in ("array", "object"):
            why = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield causes.invalid(f"{path}.items.properties[{key}].type", items["type"], why)
        if key in keys[:index]:
            yield causes.invalid(f"{path}.{LIST_KEYS}", keys, "must not contain duplicate entries")


def _key_values(items: Schema, keys: list[str], path: str) -> Causes:
    fields = items.get("properties") or {}
    reason = f"this property is in {LIST_KEYS}, so it"
    for key in keys:
        if key not in fields:
            continue
        at = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and fields[key].get("default") is None:
            why = f"{reason} must have a default or be a required property"
            yield causes.required(f"{at}.default", why)
        if fields[key].get("nullable"):
            yield causes.forbidden(f"{at}.nullable", f"{reason} cannot be nullable")
