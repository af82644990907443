"""Which schemas a definition may have: structural ones, which say the type of every field. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvestigate.cluster.plane.kinds.custom import rule_checks, supported, validation
from kvestigate.cluster.plane.kinds.custom.formats import FORMATS, UNCHECKED
from kvestigate.cluster.plane.kinds.custom.parts import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    alternatives,
    notable,
)
from kvestigate.cluster.plane.kinds.custom.rules import RULES
from kvestigate.cluster.plane.kinds.custom.structure import Structure
from kvestigate.kube import causes, patterns
from kvestigate.kube.causes import Cause, Causes

Schema = Mapping[str, Any]

_AT_ROOT = "must not be empty at the root"
_OBJECT_FIELDS = "must not be empty for specified object fields"
_ITEMS = "must not be empty for specified array items"
_INTEGER_OR_STRING = [{"type": "integer"}, {"type": "string"}]

# What a schema inside allOf and the like may not say, and what it must be instead.
_FORBIDDEN_INSIDE = {
    "additionalProperties": "undefined",
    "default": "undefined",
    "description": "empty",
    "nullable": "false",
    "title": "empty",
    "type": "empty",
    EMBEDDED: "false",
    INT_OR_STRING: "false",
    LIST_KEYS: "empty",
    LIST_TYPE: "undefined",
    MAP_TYPE: "undefined",
    PRESERVE: "false",
    RULES: "empty",
}


def check(schema: Schema, path: str) -> list[Cause]:
    """All reasons why a schema cannot be used for a custom resource."""
    problems: list[Cause] = []
    if schema.get("nullable"):
        problems.append(causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    convertible = supported.is_convertible(schema)
    if convertible:
        wrong = [*_typed(schema, path, _AT_ROOT), *_incomplete(schema, schema, path, path)]
        problems += sorted(wrong, key=str) or _defaults(schema, path)
    whole = not problems
    problems += supported.check(schema, path)
    if whole and not problems:
        problems += rule_checks.expressions(schema, path)
    return problems


def odd_formats(schema: Any) -> Iterator[str]:
    """Formats that the server does not know."""
    if isinstance(schema, dict):
        form = schema.get("format")
        if form and form not in FORMATS and form not in UNCHECKED:
            yield form
        for inner, _ in notable(schema, ""):
            yield from odd_formats(inner)


# -- what makes it structural -----------------------------------------------------------


def _typed(schema: Schema, path: str, missing: str) -> Causes:
    """`missing` is what to say of a type that is not given, which depends on where this is."""
    type_, extra = schema.get("type"), schema.get("additionalProperties")
    if type_ == "array" and schema.get("items") is None:
        yield causes.required(f"{path}.items", "must be specified")
    for inner, at in notable(schema, path):
        yield from _typed(inner, at, _ITEMS if at == f"{path}.items" else _OBJECT_FIELDS)
    if extra is not None and missing == _AT_ROOT:
        yield causes.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if schema.get(INT_OR_STRING):
        for key in (PRESERVE, EMBEDDED):
            if schema.get(key):
                why = f"must be false if {INT_OR_STRING} is true"
                yield causes.invalid(f"{path}.{key}", True, why)
    yield from _conditions(schema, path)
    if schema.get(EMBEDDED):
        yield from _embedded(schema, path)
    elif not type_ and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield causes.required(f"{path}.type", missing)
    if missing == _AT_ROOT and type_ not in (None, "", "object"):
        yield causes.invalid(f"{path}.type", type_, "must be object at the root")
    if missing == _AT_ROOT or schema.get(EMBEDDED):
        yield from _meta(schema, path, root=missing == _AT_ROOT)


def _embedded(schema: Schema, path: str) -> Causes:
    if schema.get("type") != "object":
        why, at = f"must be object if {EMBEDDED} is true", f"{path}.type"
        type_ = schema.get("type")
        yield causes.invalid(at, type_, why) if type_ else causes.required(at, why)
    if schema.get("additionalProperties") is not None:
        why = f"must not be used if {EMBEDDED} is set"
        yield causes.forbidden(f"{path}.additionalProperties", why)
    if not schema.get("properties") and not schema.get(PRESERVE):
        why = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield causes.required(f"{path}.properties", why)


def _meta(schema: Schema, path: str, *, root: bool) -> Causes:
    """Refuse wrong types of kind, apiVersion and metadata, and rules about other metadata."""
    fields = schema.get("properties") or {}
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        type_ = fields.get(name, {}).get("type", "") if name in fields else wanted
        if type_ != wanted:
            yield causes.invalid(f"{path}.properties[{name}].type", type_, f"must be {wanted}")
    if root and _says_more(fields.get("metadata", {})):
        why = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        yield causes.forbidden(f"{path}.properties[metadata]", why)


def _says_more(meta: Schema) -> bool:
    if set(meta.get("properties") or ()) - {"name", "generateName"}:
        return True
    known = ("type", "default", "properties")
    return any(
        value not in (None, "", False, [], {}) for key, value in meta.items() if key not in known
    )


def _conditions(schema: Schema, path: str) -> Causes:
    """Refuse structure inside allOf, anyOf and the like, and invalid patterns.

    The two accepted spellings of int-or-string are exempt.
    """
    for inner, at in alternatives(schema, path):
        if at.startswith(f"{path}.anyOf") and schema["anyOf"] == _INTEGER_OR_STRING:
            continue
        skipped = at == f"{path}.allOf[0]" and inner.get("anyOf") == _INTEGER_OR_STRING
        rest = {key: value for key, value in inner.items() if key != "anyOf"}
        yield from _bare(rest if skipped else inner, at)
    if pattern := schema.get("pattern"):
        try:
            patterns.compiled(pattern)
        except patterns.InvalidPattern as error:
            problem = f"error parsing regexp: {error}"
            why = f"must be a valid regular expression, but isn't: {problem}"
            yield causes.invalid(f"{path}.pattern", pattern, why)


def _bare(schema: Schema, path: str) -> Causes:
    """Refuse keywords of structure, which only the schema outside may have."""
    for key, wanted in _FORBIDDEN_INSIDE.items():
        if schema.get(key) not in (None, "", False, []):
            yield causes.forbidden(f"{path}.{key}", f"must be {wanted} to be structural")
    yield from _conditions(schema, path)
    if isinstance(items := schema.get("items"), dict):
        yield from _bare(items, f"{path}.items")
    fields = schema.get("properties") or {}
    for name, inner in fields.items():
        yield from _bare(inner, f"{path}.properties[{name}]")
    if "metadata" in fields:
        why = "must not be specified in a nested context"
        yield causes.forbidden(f"{path}.properties[metadata]", why)


def _incomplete(condition: Schema, schema: Schema, path: str, origin: str) -> Causes:
    """What the conditions inside of `origin` are about without the schema at `path` having it."""
    for inner, at in alternatives(condition, origin):
        yield from _missing(inner, schema, path, at)


def _missing(condition: Schema, schema: Schema | None, path: str, origin: str) -> Causes:
    if schema is None:
        yield causes.required(path, f"because it is defined in {origin}")
        return
    yield from _incomplete(condition, schema, path, origin)
    if isinstance(items := condition.get("items"), dict):
        yield from _missing(items, schema.get("items"), f"{path}.items", f"{origin}.items")
    fields = schema.get("properties") or {}
    for name, inner in (condition.get("properties") or {}).items():
        at = f".properties[{name}]"
        yield from _missing(inner, fields.get(name), f"{path}{at}", f"{origin}{at}")


def _defaults(schema: Schema, path: str) -> Causes:
    default = schema.get("default")
    if default is not None:
        at = f"{path}.default"
        if Structure(schema).unknown(default):
            yield causes.invalid(at, default, "must not have unknown fields")
        problems: list[Cause] = []
        validation.compiled(schema)(Structure(schema).shaped(default), "", problems)
        for cause in problems:
            inner = f".{cause.field}" if cause.field not in ("", "<nil>") else ""
            yield Cause(cause.reason, at + inner, cause.message)
    for inner_schema, where in notable(schema, path):
        yield from _defaults(inner_schema, where)
