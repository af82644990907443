"""OpenAPI version 2 in protobuf says what it says in JSON."""

from __future__ import annotations

import pytest

from kvestigate.cluster.plane.front.openapi import v2, v2_protobuf
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.request.protobuf import wire
from kvestigate.cluster.plane.request.protobuf.wire import Value
from kvestigate.cluster.plane.store.state import EMPTY
from kvestigate.http.message import Headers, Request, Response
from tests.cluster.plane.conftest import Api

DEFINITIONS, PATHS, VALUE = 9, 8, 2


def parts(data: Value, number: int) -> list[bytes]:
    """The messages or texts at a number of a message."""
    assert isinstance(data, bytes)
    return [value for at, value in wire.fields(data) if at == number and isinstance(value, bytes)]


def names(data: Value) -> list[str]:
    return [each.decode() for each in parts(data, 1)]


@pytest.mark.parametrize("accept", v2_protobuf.ASKED)
async def test_every_definition_and_path_is_in_it(accept: str, api: Api) -> None:
    expected = (await api.get("/openapi/v2")).body
    answer = await api.server.handle(api.request("GET", "/openapi/v2", None, {"accept": accept}))
    assert isinstance(answer, Response)
    assert isinstance(answer.body, bytes)
    assert ("content-type", v2_protobuf.MEDIA) in answer.headers
    (definitions,) = parts(answer.body, DEFINITIONS)
    assert [*map(names, parts(definitions, 1))] == [[name] for name in expected["definitions"]]
    (paths,) = parts(answer.body, PATHS)
    assert [*map(names, parts(paths, 2))] == [[path] for path in expected["paths"]]


def test_a_schema_is_told_whole() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "array", "items": {"$ref": "#/definitions/B"}}},
        "additionalProperties": False,
        "maxProperties": 300,
        "maximum": 1.5,
        "minLength": -1,
        "x-kubernetes-map-type": "atomic",
    }
    document = {"definitions": {"A": v2_protobuf.schema(schema)}}
    (definitions,) = parts(v2_protobuf.encode(document), DEFINITIONS)
    (named,) = parts(definitions, 1)
    (found,) = parts(named, VALUE)
    fields = dict(wire.fields(found))
    assert names(fields[22]) == ["object"]
    assert fields[19] == b"a"
    assert (fields[17], fields[7]) == (300, 1.5)
    assert isinstance(fields[12], int)
    assert wire.signed(fields[12]) == -1
    assert fields[21] == b"\x10\x00"
    (extension,) = parts(found, 31)
    assert names(extension) == ["x-kubernetes-map-type"]
    (any_,) = parts(extension, VALUE)
    assert parts(any_, 2) == [b'"atomic"']
    (property_,) = parts(fields[25], 1)
    (array,) = parts(property_, VALUE)
    (items,) = parts(array, 23)
    assert parts(parts(items, 1)[0], 1) == [b"#/definitions/B"]


async def test_other_forms_are_not_acceptable(api: Api) -> None:
    assert (await api.get("/openapi/v2", accept="text/html")).status == 406


@pytest.mark.parametrize("accept", ["application/json", *v2_protobuf.ASKED])
async def test_a_document_is_made_in_steps(accept: str) -> None:
    steps: list[int] = []

    async def breathe() -> None:
        steps.append(1)

    request = Request("GET", "/", headers=Headers([("accept", accept)]))
    document = v2.OpenApi(types.of(EMPTY))
    first = await document.respond(request, breathe)
    made = len(steps)
    second = await document.respond(request, breathe)

    assert made > 500
    assert len(steps) == made, "it is there already"
    assert first.body is second.body
