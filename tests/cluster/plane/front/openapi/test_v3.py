"""OpenAPI version 3, as kubectl and generators of clients read it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.plane.front.openapi import v2, v3
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.store.state import EMPTY
from kvestigate.http.message import Request, Response
from kvestigate.kube.resources import Resource
from tests.cluster.plane.conftest import Api

CORE = "/openapi/v3/api/v1"


async def listed(api: Api) -> dict[str, str]:
    paths = (await api.get("/openapi/v3")).body["paths"]
    return {name: entry["serverRelativeURL"] for name, entry in paths.items()}


def references(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(references, value))
    if not isinstance(value, dict):
        return set()
    # A schema of schemas has a property of that name.
    own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return own.union(*map(references, value.values()))


async def test_every_group_and_version_is_listed(api: Api) -> None:
    groups = (await api.get("/apis")).body["groups"]
    versions = {v["groupVersion"] for group in groups for v in group["versions"]}
    assert set(await listed(api)) == {"api/v1", *(f"apis/{version}" for version in versions)}


async def test_a_listed_document_never_changes_under_its_address(api: Api) -> None:
    url = (await listed(api))["apis/apps/v1"]
    answer = await api.get(url)
    assert answer.status == 200
    assert answer.headers.get("cache-control") == "public, immutable"
    again = await api.get(url, if_none_match=answer.headers.get("etag"))
    assert (again.status, again.body) == (304, "")


async def test_an_outdated_address_leads_to_the_present_one(api: Api) -> None:
    answer = await api.get(f"{CORE}?hash=ABC")
    assert answer.status == 301
    assert answer.headers.get("location") == (await listed(api))["api/v1"]


async def test_without_a_hash_the_document_may_change(api: Api) -> None:
    assert (await api.get(CORE)).headers.get("cache-control") == "no-cache, private"


async def test_protobuf_is_asked_for_and_json_is_answered(api: Api) -> None:
    asked = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
    answer = await api.get(CORE, accept=asked)
    assert answer.headers.get("content-type") == "application/json"


async def test_no_document_refers_to_what_it_lacks(api: Api) -> None:
    for url in (await listed(api)).values():
        document = (await api.get(url)).body
        known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert references(document) <= known


async def test_lists_say_how_they_are_patched(api: Api) -> None:
    schemas = (await api.get(CORE)).body["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["items"] == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}],
        "default": {},
    }


async def test_kubectl_finds_that_fields_are_validated_by_the_server(api: Api) -> None:
    paths = (await api.get("/openapi/v3/apis/apps/v1")).body["paths"]
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


@pytest.mark.parametrize("path", [f"{CORE}x", "/openapi/v3/apis/nope/v1", "/openapi/v4"])
async def test_documents_of_nothing_are_not_found(path: str, api: Api) -> None:
    assert (await api.get(path)).status == 404


async def test_version_2_has_everything_in_one_document(api: Api) -> None:
    answer = await api.get("/openapi/v2")
    assert answer.body["swagger"] == "2.0"
    known = {f"#/definitions/{name}" for name in answer.body["definitions"]}
    assert references(answer.body) <= known
    assert "/api/v1/namespaces/{namespace}/pods" in answer.body["paths"]
    again = await api.get("/openapi/v2", if_none_match=answer.headers.get("etag"))
    assert again.status == 304


class Widget(Kind):
    schema = {  # noqa: RUF012 - a stand-in for a compiled definition
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"port": {"anyOf": [{"type": "string"}]}}}
        },
    }


def widgets() -> Types:
    return Types(
        {
            ("example.com", "v1", "widgets"): Widget(
                Resource(
                    "example.com",
                    "v1",
                    "widgets",
                    "Widget",
                    verbs=("get", "list", "create", "patch"),
                    subresources=("status", "scale"),
                )
            )
        }
    )


WIDGETS = widgets()


async def at_once() -> None:
    pass


async def test_a_custom_kind_has_its_own_schema() -> None:
    path = "/openapi/v3/apis/example.com/v1"
    document = await v3.of(WIDGETS).respond(path, Request("GET", "/"), "", at_once)
    body = decoded(document)
    schema = body["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["properties"]["port"] == {"anyOf": [{"type": "string"}]}
    assert schema["properties"]["metadata"]["allOf"][0]["$ref"].endswith(".ObjectMeta")
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "kind": "Widget", "version": "v1"}
    ]
    known = {f"#/components/schemas/{name}" for name in body["components"]["schemas"]}
    assert references(body) <= known
    patch = body["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


@pytest.mark.parametrize(
    ("definition", "field", "said"),
    [
        ("Container", "imagePullPolicy", {"enum": ["Always", "IfNotPresent", "Never"]}),
        ("ContainerPort", "protocol", {"default": "TCP", "enum": ["SCTP", "TCP", "UDP"]}),
        ("ContainerPort", "containerPort", {"default": 0}),
    ],
)
async def test_what_a_field_may_be_is_told(
    definition: str, field: str, said: dict[str, Any]
) -> None:
    document = await v3.of(types.of(EMPTY)).respond(CORE, Request("GET", "/"), "", at_once)
    body = decoded(document)
    schema = body["components"]["schemas"][f"io.k8s.api.core.v1.{definition}"]
    assert schema["properties"][field].items() >= said.items()


async def test_a_reference_is_wrapped_only_beside_something_else() -> None:
    document = await v3.of(types.of(EMPTY)).respond(CORE, Request("GET", "/"), "", at_once)
    body = decoded(document)
    schemas = body["components"]["schemas"]
    spec = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]
    quantity = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}
    assert spec["overhead"]["additionalProperties"] == quantity
    assert spec["containers"]["items"]["default"] == {}
    assert "allOf" in spec["containers"]["items"]


async def test_version_2_leaves_out_what_it_cannot_say() -> None:
    body = decoded(await v2.of(WIDGETS).respond(Request("GET", "/"), at_once))
    schema = body["definitions"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["properties"]["port"] == {}


async def test_planes_share_the_documents_about_the_types_they_share() -> None:
    builtin, extended = v3.of(types.of(EMPTY)), v3.OpenApi(types.of(EMPTY).extended(WIDGETS))
    name = CORE.removeprefix("/openapi/v3/")

    assert await builtin.document(name, at_once) is await extended.document(name, at_once)


async def test_documents_are_made_in_steps() -> None:
    steps: list[int] = []

    async def breathe() -> None:
        steps.append(1)

    index = await v3.of(widgets()).respond("/openapi/v3", Request("GET", "/"), "", breathe)

    assert len(steps) > 5
    assert list(decoded(index)["paths"]) == ["apis/example.com/v1"]


def decoded(response: Response | None) -> Any:
    assert response is not None
    assert isinstance(response.body, bytes)
    return msgspec.json.decode(response.body)
