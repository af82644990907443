"""The versions of a definition as kube-apiserver's errors print them. Pure.

It prints the type that it works with inside, with every field and its own names for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvestigate.cluster.plane.kinds.custom import rule_checks

# The field in Go, what it is called in JSON, and what it is if nothing is said.
_SCHEMA: tuple[tuple[str, str, Any], ...] = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)
_VERSION: tuple[tuple[str, str, Any], ...] = (
    ("Name", "name", ""),
    ("Served", "served", False),
    ("Storage", "storage", False),
    ("Deprecated", "deprecated", False),
    ("DeprecationWarning", "deprecationWarning", None),
    ("Schema", "schema", None),
    ("Subresources", "subresources", None),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", None),
    ("SelectableFields", "selectableFields", None),
)
_COLUMN: tuple[tuple[str, str, Any], ...] = (
    ("Name", "name", ""),
    ("Type", "type", ""),
    ("Format", "format", ""),
    ("Description", "description", ""),
    ("Priority", "priority", 0),
    ("JSONPath", "jsonPath", ""),
)
_SCALE: tuple[tuple[str, str, Any], ...] = (
    ("SpecReplicasPath", "specReplicasPath", ""),
    ("StatusReplicasPath", "statusReplicasPath", ""),
    ("LabelSelectorPath", "labelSelectorPath", None),
)
_SHARED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def versions(told: list[dict[str, Any]] | None) -> Any:
    if not told:
        return told
    common = {key for key in _SHARED if all(each.get(key) == told[0].get(key) for each in told)}
    return [_version({k: v for k, v in each.items() if k not in common}) for each in told]


def _version(told: Mapping[str, Any]) -> dict[str, Any]:
    made = {go: told.get(key, zero) for go, key, zero in _VERSION}
    if made["Schema"]:
        made["Schema"] = {"OpenAPIV3Schema": schema(made["Schema"].get("openAPIV3Schema"))}
    if made["Subresources"] is not None:
        scale = made["Subresources"].get("scale")
        made["Subresources"] = {
            "Status": made["Subresources"].get("status"),
            "Scale": None if scale is None else _fields(scale, _SCALE),
        }
    if made["AdditionalPrinterColumns"]:
        columns = made["AdditionalPrinterColumns"]
        made["AdditionalPrinterColumns"] = [_fields(each, _COLUMN) for each in columns]
    if made["SelectableFields"]:
        fields = made["SelectableFields"]
        made["SelectableFields"] = [{"JSONPath": each.get("jsonPath", "")} for each in fields]
    return made


def _fields(told: Mapping[str, Any], fields: tuple[tuple[str, str, Any], ...]) -> dict[str, Any]:
    return {go: told.get(key, zero) for go, key, zero in fields}


def schema(told: Any) -> Any:
    """The schema of a value, whole."""
    if not isinstance(told, dict):
        return told
    made = _fields(told, _SCHEMA)
    if made["Properties"]:
        fields = made["Properties"]
        made["Properties"] = {name: schema(fields[name]) for name in sorted(fields)}
    for key in ("AllOf", "OneOf", "AnyOf"):
        made[key] = made[key] and [schema(each) for each in made[key]]
    made["Not"] = schema(made["Not"])
    if made["Items"] is not None:
        made["Items"] = {"Schema": schema(made["Items"]), "JSONSchemas": None}
    if made["AdditionalProperties"] is not None:
        extra = made["AdditionalProperties"]
        inner = None if isinstance(extra, bool) else schema(extra)
        made["AdditionalProperties"] = {"Allows": extra is not False, "Schema": inner}
    if made["XValidations"]:
        made["XValidations"] = [rule_checks.dump(rule) for rule in made["XValidations"]]
    return made


def told(of: Mapping[str, Any]) -> Iterator[str]:
    """What a schema says anything in, in the order and by the names that the server has."""
    for go, key, zero in _SCHEMA:
        if of.get(key, zero) != zero:
            yield go
