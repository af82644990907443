"""Which schemas a definition may have: structural ones, which say the type of every field. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kvestigate.kube import causes, patterns
from kvestigate.kube.causes import Cause
from kvestigate.plane.custom import rule_checks, validation
from kvestigate.plane.custom.formats import FORMATS, UNCHECKED
from kvestigate.plane.custom.structure import Structure

Schema = Mapping[str, Any]
Causes = Iterator[Cause]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("$ref", "id", "patternProperties", "definitions", "dependencies")
_OBJECT_FIELDS = "must not be empty for specified object fields"
_ITEMS = "must not be empty for specified array items"
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_LIST_TYPE, _LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_MAP_TYPE = "x-kubernetes-map-type"

# What a schema inside allOf and the like may not say, and what it must be instead.
_FORBIDDEN_INSIDE = {
    "additionalProperties": "undefined",
    "default": "undefined",
    "description": "empty",
    "nullable": "false",
    "title": "empty",
    "type": "empty",
    _EMBEDDED: "false",
    _INT_OR_STRING: "false",
    _LIST_KEYS: "empty",
    _LIST_TYPE: "undefined",
    _MAP_TYPE: "undefined",
    _PRESERVE: "false",
}


def check(schema: Schema, path: str) -> list[Cause]:
    """Everything that keeps a schema from being one of a custom resource."""
    found = [*_supported(schema, path, root=True)]
    if not found:
        found = [*_root(schema, path), *_typed(schema, path, "must not be empty at the root")]
        found.sort(key=lambda cause: cause.field)
    if not found:
        found = [*_defaults(schema, path), *rule_checks.expressions(schema, path)]
    return found


def odd_formats(schema: Any) -> Iterator[str]:
    """The formats that mean nothing to the server."""
    if isinstance(schema, dict):
        form = schema.get("format")
        if form and form not in FORMATS and form not in UNCHECKED:
            yield form
        for inner, _ in _notable(schema, ""):
            yield from odd_formats(inner)


def _inside(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """The schemas of the values inside."""
    for name in sorted(schema.get("properties") or ()):
        yield schema["properties"][name], f"{path}.properties[{name}]"
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield schema[key], f"{path}.{key}"


def _notable(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """The same without scalars of which nothing is said that could be wrong: most of a schema."""
    fields = schema.get("properties") or {}
    for name in sorted([name for name in fields if not _is_plain(fields[name])]):
        yield fields[name], f"{path}.properties[{name}]"
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield schema[key], f"{path}.{key}"


def _is_plain(schema: Schema) -> bool:
    return schema.keys() <= _PLAIN and schema.get("type") in _SCALARS


_SCALARS = ("boolean", "integer", "number", "string")
_PLAIN = frozenset(
    {
        "description",
        "enum",
        "maxLength",
        "maximum",
        "minLength",
        "minimum",
        "nullable",
        "title",
        "type",
    }
)


def _alternatives(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    for key in _JUNCTORS:
        for position, inner in enumerate(schema.get(key) or ()):
            yield inner, f"{path}.{key}[{position}]"
    if schema.get("not"):
        yield schema["not"], f"{path}.not"


# -- what is supported at all -----------------------------------------------------------


def _supported(schema: Schema, path: str, *, root: bool = False) -> Causes:
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield causes.forbidden(f"{path}.uniqueItems", why)
    if schema.get("additionalProperties") not in (None, False) and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield causes.forbidden(f"{path}.additionalProperties", why)
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield causes.forbidden(f"{path}.{key}", f"{key} is not supported")
    if root and schema.get("nullable"):
        yield causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    if schema.get(_PRESERVE) is False:
        yield causes.invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    if schema.get("type") and schema["type"] not in _TYPES:
        yield causes.unsupported(f"{path}.type", schema["type"], _TYPES)
    yield from _pattern(schema, path)
    yield from rule_checks.forms(schema, path)
    yield from _lists(schema, path)
    yield from _maps(schema, path)
    for inner, at in (*_notable(schema, path), *_alternatives(schema, path)):
        yield from _supported(inner, at)


def _pattern(schema: Schema, path: str) -> Causes:
    pattern = schema.get("pattern")
    if not pattern:
        return
    try:
        patterns.compiled(pattern)
    except re.error as error:
        why = f"must be a valid regular expression, but isn't: {_complaint(pattern, error)}"
        yield causes.invalid(f"{path}.pattern", pattern, why)


def _complaint(pattern: str, error: re.error) -> str:
    if "unterminated subpattern" in error.msg:
        return f"error parsing regexp: missing closing ): `{pattern}`"
    return f"error parsing regexp: {error.msg}: `{pattern}`"


def _lists(schema: Schema, path: str) -> Causes:
    type_, list_type, keys = schema.get("type"), schema.get(_LIST_TYPE), schema.get(_LIST_KEYS)
    items = schema.get("items")
    if isinstance(items, list):
        why = "items must be a schema object and not an array"
        yield causes.forbidden(f"{path}.items", why)
        return
    if type_ == "array" and items is None:
        yield causes.required(f"{path}.items", "must be specified")
    if list_type is not None and type_ != "array":
        why = f"must be array if {_LIST_TYPE} is specified"
        at = f"{path}.type"
        yield causes.invalid(at, type_, why) if type_ else causes.required(at, why)
    elif list_type not in (None, "atomic", "set", "map"):
        yield causes.unsupported(f"{path}.{_LIST_TYPE}", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        why = f"must be map if {_LIST_KEYS} is non-empty"
        at = f"{path}.{_LIST_TYPE}"
        yield causes.invalid(at, list_type, why) if list_type else causes.required(at, why)
    if list_type == "map":
        yield from _keyed(items or {}, keys or [], path)
    elif list_type == "set" and (items or {}).get("type") == "object":
        yield from _whole(items or {}, path)


def _whole(items: Schema, path: str) -> Causes:
    if items.get(_MAP_TYPE) != "atomic":
        why = f"must be atomic as item of a list with {_LIST_TYPE}=set"
        yield causes.invalid(f"{path}.items.{_MAP_TYPE}", items.get(_MAP_TYPE), why)


def _keyed(items: Schema, keys: list[str], path: str) -> Causes:
    if not keys:
        why = f"must not be empty if {_LIST_TYPE} is map"
        yield causes.required(f"{path}.{_LIST_KEYS}", why)
        return
    if items.get("type") not in (None, "object"):
        why = f"must be object if parent array's {_LIST_TYPE} is map"
        yield causes.invalid(f"{path}.items.type", items["type"], why)
        return
    fields = items.get("properties") or {}
    if any(key not in fields for key in keys):
        why = "entries must all be names of item properties"
        yield causes.invalid(f"{path}.{_LIST_KEYS}", keys, why)
        return
    for key in keys:
        if key not in (items.get("required") or ()) and fields[key].get("default") is None:
            why = f"this property is in {_LIST_KEYS}, so it must have a default or be a required"
            yield causes.required(f"{path}.items.properties[{key}].default", f"{why} property")


def _maps(schema: Schema, path: str) -> Causes:
    map_type = schema.get(_MAP_TYPE)
    if map_type is None:
        return
    if schema.get("type") != "object":
        why = f"must be object if {_MAP_TYPE} is specified"
        yield causes.invalid(f"{path}.type", schema.get("type"), why)
    elif map_type not in ("atomic", "granular"):
        yield causes.unsupported(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular"))


# -- what makes it structural -----------------------------------------------------------


def _root(schema: Schema, path: str) -> Causes:
    if schema.get("type") not in (None, "", "object"):
        yield causes.invalid(f"{path}.type", schema["type"], "must be object at the root")
    fields = schema.get("properties") or {}
    for name in ("apiVersion", "kind"):
        if fields.get(name, {}).get("type", "string") != "string":
            at = f"{path}.properties[{name}].type"
            yield causes.invalid(at, fields[name]["type"], "must be string")
    meta = fields.get("metadata", {})
    if set(meta.get("properties") or ()) - {"name", "generateName"}:
        why = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        yield causes.forbidden(f"{path}.properties[metadata]", why)


def _typed(schema: Schema, path: str, missing: str) -> Causes:
    if not schema.get("type") and not schema.get(_INT_OR_STRING) and not schema.get(_PRESERVE):
        yield causes.required(f"{path}.type", missing)
    if schema.get(_EMBEDDED):
        yield from _embedded(schema, path)
    for inner, at in _notable(schema, path):
        yield from _typed(inner, at, _ITEMS if at.endswith(".items") else _OBJECT_FIELDS)
    if not schema.get(_INT_OR_STRING):
        for inner, at in _alternatives(schema, path):
            yield from _bare(inner, at)


def _embedded(schema: Schema, path: str) -> Causes:
    if not schema.get("properties") and not schema.get(_PRESERVE):
        why = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        yield causes.required(f"{path}.properties", why)
    if schema.get("type") not in (None, "", "object"):
        why = f"must be object if {_EMBEDDED} is true"
        yield causes.invalid(f"{path}.type", schema["type"], why)


def _bare(schema: Schema, path: str) -> Causes:
    """Inside allOf and the like there are only conditions."""
    for key, wanted in _FORBIDDEN_INSIDE.items():
        if schema.get(key) not in (None, "", False, []):
            yield causes.forbidden(f"{path}.{key}", f"must be {wanted} to be structural")
    for inner, at in (*_inside(schema, path), *_alternatives(schema, path)):
        if not at.endswith(".additionalProperties"):
            yield from _bare(inner, at)


def _defaults(schema: Schema, path: str) -> Causes:
    default = schema.get("default")
    if default is not None:
        at = f"{path}.default"
        if Structure(schema).unknown(default):
            yield causes.invalid(at, default, "must not have unknown fields")
        found: list[Cause] = []
        validation.compiled(schema)(Structure(schema).shaped(default), "", found)
        for cause in found:
            inner = f".{cause.field}" if cause.field not in ("", "<nil>") else ""
            yield Cause(cause.reason, at + inner, cause.message)
    for inner_schema, where in _notable(schema, path):
        yield from _defaults(inner_schema, where)
