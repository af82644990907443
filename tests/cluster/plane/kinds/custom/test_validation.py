"""What is said of objects that do not fit their schema: every text is the real server's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api
from tests.cluster.plane.kinds.custom.conftest import DEFINITIONS, PROBES, definition, probe

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "minLength": 2, "maxLength": 4},
        "i": {
            "type": "integer",
            "minimum": 1,
            "exclusiveMinimum": True,
            "maximum": 5,
            "exclusiveMaximum": True,
        },
        "n": {"type": "number", "multipleOf": 0.5},
        "i32": {"type": "integer", "format": "int32"},
        "arr": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}},
        "obj": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 2,
            "additionalProperties": {"type": "integer"},
        },
        "one": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        "any": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        "all": {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "b$"}]},
        "not": {"type": "string", "not": {"enum": ["bad"]}},
        "date": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "ip": {"type": "string", "format": "ipv4"},
        "uuid": {"type": "string", "format": "uuid"},
        "email": {"type": "string", "format": "email"},
        "byte": {"type": "string", "format": "byte"},
        "uri": {"type": "string", "format": "uri"},
        "dur": {"type": "string", "format": "duration"},
        "b": {"type": "boolean"},
        "e": {"type": "integer", "enum": [1, 2]},
        "ios": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+%?$",
        },
        "req": {
            "type": "object",
            "required": ["x", "y"],
            "properties": {"x": {"type": "string"}, "y": {"type": "string", "maxLength": 1}},
        },
        "list": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string"}, "d": {"type": "string", "default": "dd"}},
            },
        },
        "emb": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        "nn": {"type": "string", "nullable": True},
        "mk": {
            "type": "object",
            "additionalProperties": {"type": "object", "properties": {"q": {"type": "string"}}},
        },
    },
}


@pytest.fixture
async def probes(api: Api) -> Api:
    assert (await api.post(DEFINITIONS, definition(SCHEMA))).status == 201
    return api


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param(
            {"s": "a"},
            'spec.s: Invalid value: "a": spec.s in body should be at least 2 chars long',
            id="s-short",
        ),
        pytest.param(
            {"s": "aaaaaaa"}, "spec.s: Too long: may not be more than 4 bytes", id="s-long"
        ),
        pytest.param(
            {"i": 1}, "spec.i: Invalid value: 1: spec.i in body should be greater than 1", id="i-lo"
        ),
        pytest.param(
            {"i": 5}, "spec.i: Invalid value: 5: spec.i in body should be less than 5", id="i-hi"
        ),
        pytest.param(
            {"n": 0.3},
            "spec.n: Invalid value: 0.3: spec.n in body should be a multiple of 0.5",
            id="n",
        ),
        pytest.param(
            {"i32": 3000000000},
            '<nil>: Invalid value: "": Checked value must be of type integer with format '
            "int32 in spec.i32",
            id="i32",
        ),
        pytest.param(
            {"i": 2.5},
            '[spec.i: Invalid value: "number": spec.i in body must be of type integer: '
            '"number", <nil>: Invalid value: "": Checked value must be of type integer '
            "(default format) in spec.i]",
            id="i-float",
        ),
        pytest.param(
            {"arr": []},
            "spec.arr: Invalid value: 0: spec.arr in body should have at least 1 items",
            id="arr-few",
        ),
        pytest.param(
            {"arr": [1, 2, 3]}, "spec.arr: Too many: 3: must have at most 2 items", id="arr-many"
        ),
        pytest.param(
            {"arr": [1, "x"]},
            'spec.arr[1]: Invalid value: "string": spec.arr[1] in body must be of type '
            'integer: "string"',
            id="arr-type",
        ),
        pytest.param(
            {"obj": {}},
            "spec.obj: Invalid value: 0: spec.obj in body should have at least 1 properties",
            id="obj-few",
        ),
        pytest.param(
            {"obj": {"a": 1, "b": 2, "c": 3}},
            "spec.obj: Too many: 3: must have at most 2 items",
            id="obj-many",
        ),
        pytest.param(
            {"obj": {"a": "x"}},
            'spec.obj.a: Invalid value: "string": spec.obj.a in body must be of type '
            'integer: "string"',
            id="obj-type",
        ),
        pytest.param(
            {"one": {}},
            '[<nil>: Invalid value: "": "spec.one" must validate one and only one schema '
            "(oneOf). Found none valid, spec.one.a: Required value]",
            id="one0",
        ),
        pytest.param(
            {"one": {"a": "x", "b": "y"}},
            '<nil>: Invalid value: "": "spec.one" must validate one and only one schema '
            "(oneOf). Found 2 valid alternatives",
            id="one2",
        ),
        pytest.param(
            {"any": {}},
            '[<nil>: Invalid value: "": "spec.any" must validate at least one schema '
            "(anyOf), spec.any.a: Required value]",
            id="any",
        ),
        pytest.param(
            {"all": "xx"},
            "[spec.all: Invalid value: \"xx\": spec.all in body should match '^a', spec.all: "
            "Invalid value: \"xx\": spec.all in body should match 'b$', <nil>: Invalid "
            'value: "": "spec.all" must validate all the schemas (allOf). None validated]',
            id="all",
        ),
        pytest.param(
            {"not": "bad"},
            '<nil>: Invalid value: "": "spec.not" must not validate the schema (not)',
            id="not",
        ),
        pytest.param(
            {"date": "x"},
            'spec.date: Invalid value: "x": spec.date in body must be of type date-time: "x"',
            id="date",
        ),
        pytest.param(
            {"day": "x"},
            'spec.day: Invalid value: "x": spec.day in body must be of type date: "x"',
            id="day",
        ),
        pytest.param(
            {"ip": "x"},
            'spec.ip: Invalid value: "x": spec.ip in body must be of type ipv4: "x"',
            id="ip",
        ),
        pytest.param(
            {"uuid": "x"},
            'spec.uuid: Invalid value: "x": spec.uuid in body must be of type uuid: "x"',
            id="uuid",
        ),
        pytest.param(
            {"email": "x"},
            'spec.email: Invalid value: "x": spec.email in body must be of type email: "x"',
            id="email",
        ),
        pytest.param(
            {"byte": "!"},
            'spec.byte: Invalid value: "!": spec.byte in body must be of type byte: "!"',
            id="byte",
        ),
        pytest.param(
            {"uri": ":"},
            'spec.uri: Invalid value: ":": spec.uri in body must be of type uri: ":"',
            id="uri",
        ),
        pytest.param(
            {"dur": "x"},
            'spec.dur: Invalid value: "x": spec.dur in body must be of type duration: "x"',
            id="dur",
        ),
        pytest.param(
            {"b": "x"},
            'spec.b: Invalid value: "string": spec.b in body must be of type boolean: "string"',
            id="b",
        ),
        pytest.param({"e": 3}, 'spec.e: Unsupported value: 3: supported values: "1", "2"', id="e"),
        pytest.param(
            {"ios": "abc"},
            "spec.ios: Invalid value: \"abc\": spec.ios in body should match '^[0-9]+%?$'",
            id="ios",
        ),
        pytest.param(
            {"ios": 1.5},
            '[spec.ios: Invalid value: "number": spec.ios in body must be of type '
            'integer,string: "number", <nil>: Invalid value: "": "spec.ios" must validate '
            'at least one schema (anyOf), spec.ios: Invalid value: "number": spec.ios in '
            'body must be of type integer: "number", <nil>: Invalid value: "": Checked '
            "value must be of type integer (default format) in spec.ios]",
            id="ios2",
        ),
        pytest.param(
            {"req": {}}, "[spec.req.x: Required value, spec.req.y: Required value]", id="req"
        ),
        pytest.param(
            {"req": {"y": "abc"}},
            "[spec.req.y: Too long: may not be more than 1 bytes, spec.req.x: Required value]",
            id="req2",
        ),
        pytest.param({"list": [{}, {"k": "a"}]}, "spec.list[0].k: Required value", id="list"),
        pytest.param(
            {"emb": {}},
            "[spec.emb.apiVersion: Required value, spec.emb.kind: Required value]",
            id="emb",
        ),
        pytest.param({"set": [1, 2, 1, 1]}, "spec.set[2]: Duplicate value: 1", id="set"),
        pytest.param(
            {"e": "x"},
            '[spec.e: Invalid value: "string": spec.e in body must be of type integer: '
            '"string", spec.e: Unsupported value: "x": supported values: "1", "2"]',
            id="multi",
        ),
        pytest.param(
            {"list": [None]},
            'spec.list[0]: Invalid value: "null": spec.list[0] in body must be of type '
            'object: "null"',
            id="listnull2",
        ),
    ],
)
async def test_a_value_that_does_not_fit_is_refused(
    probes: Api, spec: dict[str, Any], told: str
) -> None:
    answer = await probes.post(PROBES, probe(spec))
    assert answer.status == 422
    assert answer.body["message"] == f'Probe.example.com "a" is invalid: {told}'
