"""Which schemas a definition may have: every text is the real server's."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.kinds.custom import structural

AT = "spec.validation.openAPIV3Schema"


def _spec(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": schema}}


def _told(schema: dict[str, Any]) -> str:
    texts = [str(cause) for cause in structural.check(schema, AT)]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        pytest.param(
            {"type": "string"},
            '{at}.type: Invalid value: "string": must be object at the root',
            id="root-string",
        ),
        pytest.param(
            {}, "{at}.type: Required value: must not be empty at the root", id="root-none"
        ),
        pytest.param(
            _spec({"type": "array"}),
            "{at}.properties[spec].items: Required value: must be specified",
            id="items-missing",
        ),
        pytest.param(
            _spec({"type": "array", "items": [{"type": "string"}]}),
            "{at}.properties[spec].items: Forbidden: items must be a schema object and not "
            "an array",
            id="items-array",
        ),
        pytest.param(
            _spec({"type": "array", "items": {}}),
            "{at}.properties[spec].items.type: Required value: must not be empty for "
            "specified array items",
            id="items-notype",
        ),
        pytest.param(
            _spec({"type": "object", "additionalProperties": {}}),
            "{at}.properties[spec].additionalProperties.type: Required value: must not be "
            "empty for specified object fields",
            id="ap-notype",
        ),
        pytest.param(
            _spec(
                {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                }
            ),
            "{at}.properties[spec].additionalProperties: Forbidden: additionalProperties "
            "and properties are mutual exclusive",
            id="ap-and-props",
        ),
        pytest.param(
            _spec({"type": "array", "uniqueItems": True, "items": {"type": "string"}}),
            "{at}.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to "
            "true since the runtime complexity becomes quadratic",
            id="unique",
        ),
        pytest.param(
            _spec({"type": "object", "$ref": "#/x"}),
            "{at}.properties[spec].$ref: Forbidden: $ref is not supported",
            id="ref",
        ),
        pytest.param(
            _spec(
                {
                    "type": "object",
                    "definitions": {"a": {"type": "string"}},
                    "dependencies": {"a": ["b"]},
                    "id": "x",
                    "patternProperties": {"a": {"type": "string"}},
                }
            ),
            "[{at}.properties[spec].id: Forbidden: id is not supported, "
            "{at}.properties[spec].patternProperties: Forbidden: patternProperties is not "
            "supported, {at}.properties[spec].definitions: Forbidden: definitions is not "
            "supported, {at}.properties[spec].dependencies: Forbidden: dependencies is not "
            "supported]",
            id="defs",
        ),
        pytest.param(
            _spec(
                {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "anyOf": [{"type": "object", "properties": {"b": {"type": "string"}}}],
                }
            ),
            "[{at}.properties[spec].anyOf[0].properties[b].type: Forbidden: must be empty "
            "to be structural, {at}.properties[spec].anyOf[0].type: Forbidden: must be "
            "empty to be structural]",
            id="junctor-type",
        ),
        pytest.param(
            _spec(
                {
                    "type": "object",
                    "allOf": [
                        {
                            "description": "x",
                            "title": "t",
                            "nullable": True,
                            "default": 1,
                            "additionalProperties": {"type": "string"},
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    ],
                }
            ),
            "[{at}.properties[spec].allOf[0].additionalProperties: Forbidden: must be "
            "undefined to be structural, {at}.properties[spec].allOf[0].default: "
            "Forbidden: must be undefined to be structural, "
            "{at}.properties[spec].allOf[0].description: Forbidden: must be empty to be "
            "structural, {at}.properties[spec].allOf[0].nullable: Forbidden: must be false "
            "to be structural, {at}.properties[spec].allOf[0].title: Forbidden: must be "
            "empty to be structural, "
            "{at}.properties[spec].allOf[0].x-kubernetes-preserve-unknown-fields: "
            "Forbidden: must be false to be structural]",
            id="junctor-more",
        ),
        pytest.param(
            _spec({"type": "text"}),
            '{at}.properties[spec].type: Unsupported value: "text": supported values: '
            '"array", "boolean", "integer", "number", "object", "string"',
            id="badtype",
        ),
        pytest.param(
            _spec({"type": "string", "pattern": "("}),
            '{at}.properties[spec].pattern: Invalid value: "(": must be a valid regular '
            "expression, but isn't: error parsing regexp: missing closing ): `(`",
            id="badpattern",
        ),
        pytest.param(
            _spec(
                {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                }
            ),
            "{at}.properties[spec].x-kubernetes-list-map-keys: Required value: must not be "
            "empty if x-kubernetes-list-type is map",
            id="list-map-nokeys",
        ),
        pytest.param(
            _spec(
                {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["z"],
                    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                }
            ),
            '{at}.properties[spec].x-kubernetes-list-map-keys: Invalid value: ["z"]: '
            "entries must all be names of item properties",
            id="list-map-badkey",
        ),
        pytest.param(
            _spec(
                {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a"],
                    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                }
            ),
            "{at}.properties[spec].items.properties[a].default: Required value: this "
            "property is in x-kubernetes-list-map-keys, so it must have a default or be a "
            "required property",
            id="list-map-optional",
        ),
        pytest.param(
            _spec(
                {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a"],
                    "items": {"type": "string"},
                }
            ),
            '{at}.properties[spec].items.type: Invalid value: "string": must be object if '
            "parent array's x-kubernetes-list-type is map",
            id="list-map-strings",
        ),
        pytest.param(
            _spec(
                {"type": "array", "x-kubernetes-list-map-keys": ["a"], "items": {"type": "string"}}
            ),
            "{at}.properties[spec].x-kubernetes-list-type: Required value: must be map if "
            "x-kubernetes-list-map-keys is non-empty",
            id="keys-nomap",
        ),
        pytest.param(
            _spec({"type": "array", "x-kubernetes-list-type": "bag", "items": {"type": "string"}}),
            '{at}.properties[spec].x-kubernetes-list-type: Unsupported value: "bag": '
            'supported values: "atomic", "set", "map"',
            id="list-type-bad",
        ),
        pytest.param(
            _spec({"type": "string", "x-kubernetes-list-type": "set"}),
            '{at}.properties[spec].type: Invalid value: "string": must be array if '
            "x-kubernetes-list-type is specified",
            id="list-type-string",
        ),
        pytest.param(
            _spec({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
            "{at}.properties[spec].items.x-kubernetes-map-type: Invalid value: null: must "
            "be atomic as item of a list with x-kubernetes-list-type=set",
            id="list-set-obj",
        ),
        pytest.param(
            _spec({"type": "object", "x-kubernetes-map-type": "x"}),
            '{at}.properties[spec].x-kubernetes-map-type: Unsupported value: "x": '
            'supported values: "atomic", "granular"',
            id="map-type",
        ),
        pytest.param(
            _spec({"type": "string", "x-kubernetes-map-type": "atomic"}),
            '{at}.properties[spec].type: Invalid value: "string": must be object if '
            "x-kubernetes-map-type is specified",
            id="map-type2",
        ),
        pytest.param(
            _spec({"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
            "{at}.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: "
            "false: must be true or undefined",
            id="puf-false",
        ),
        pytest.param(
            _spec({"type": "object", "x-kubernetes-embedded-resource": True}),
            "{at}.properties[spec].properties: Required value: must not be empty if "
            "x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
            id="embedded",
        ),
        pytest.param(
            _spec({"type": "string", "x-kubernetes-embedded-resource": True}),
            "[{at}.properties[spec].properties: Required value: must not be empty if "
            "x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields, {at}.properties[spec].type: Invalid "
            'value: "string": must be object if x-kubernetes-embedded-resource is true]',
            id="embedded2",
        ),
        pytest.param(
            _spec({"type": "integer", "default": "x"}),
            '{at}.properties[spec].default: Invalid value: "string":  in body must be of '
            'type integer: "string"',
            id="default-bad",
        ),
        pytest.param(
            _spec({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            '{at}.properties[spec].default: Invalid value: {"b":1}: must not have unknown fields',
            id="default-unknown",
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {
                    "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
                    "apiVersion": {"type": "integer"},
                },
            },
            '[{at}.properties[apiVersion].type: Invalid value: "integer": must be string, '
            "{at}.properties[metadata]: Forbidden: must not specify anything other than "
            "name and generateName, but metadata is implicitly specified]",
            id="metadata",
        ),
        pytest.param(
            {"type": "object", "nullable": True},
            "{at}.nullable: Forbidden: nullable cannot be true at the root",
            id="nullable-root",
        ),
        pytest.param(
            _spec({"type": "object", "properties": {"b": {}, "a": {}}}),
            "[{at}.properties[spec].properties[a].type: Required value: must not be empty "
            "for specified object fields, {at}.properties[spec].properties[b].type: "
            "Required value: must not be empty for specified object fields]",
            id="two",
        ),
    ],
)
def test_a_schema_that_is_not_structural_is_refused(schema: dict[str, Any], told: str) -> None:
    assert _told(schema) == told.replace("{at}", AT)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(_spec({"type": "object", "additionalProperties": False}), id="ap-false"),
        pytest.param(
            _spec(
                {"type": "array", "items": {"type": "string"}, "not": {"items": {"pattern": "a"}}}
            ),
            id="junctor-items",
        ),
        pytest.param(
            _spec({"type": "string", "x-kubernetes-preserve-unknown-fields": True}), id="puf-string"
        ),
        pytest.param(_spec({"type": "string", "x-kubernetes-int-or-string": True}), id="ios-type"),
        pytest.param(
            _spec(
                {
                    "x-kubernetes-int-or-string": True,
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                }
            ),
            id="ios-anyof",
        ),
        pytest.param(_spec({"type": "string", "default": None}), id="default-null"),
        pytest.param(_spec({"type": "string", "enum": ["a", "a"]}), id="enum"),
        pytest.param(_spec({"type": "string", "format": "funny"}), id="format"),
        pytest.param(
            {
                "type": "object",
                "properties": {
                    "metadata": {
                        "type": "object",
                        "properties": {"name": {"type": "string", "pattern": "a+"}},
                    }
                },
            },
            id="metadata-name",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, id="root-puf"
        ),
        pytest.param(
            _spec({"type": "string", "properties": {"a": {"type": "string"}}}), id="props-nonobject"
        ),
        pytest.param(_spec({"type": "object", "additionalProperties": True}), id="ap-true"),
        pytest.param(_spec({"type": "object", "required": ["a", "a"]}), id="req-dup"),
    ],
)
def test_other_schemas_are_fine(schema: dict[str, Any]) -> None:
    assert structural.check(schema, AT) == []
