"""Discovery, as clients walk it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OLD = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


async def resources(api: Api, path: str) -> dict[str, Any]:
    answer = await api.get(path)
    return {each["name"]: each for each in answer.body["resources"]}


async def test_every_group_and_version_that_is_listed_is_there(api: Api) -> None:
    groups = (await api.get("/apis")).body["groups"]
    for group in groups:
        alone = (await api.get(f"/apis/{group['name']}")).body
        assert alone == {"kind": "APIGroup", "apiVersion": "v1", **group}
        for version in group["versions"]:
            listed = (await api.get(f"/apis/{version['groupVersion']}")).body
            assert listed["groupVersion"] == version["groupVersion"]
            assert listed["resources"]


async def test_the_preferred_version_is_the_newest(api: Api) -> None:
    group = (await api.get("/apis/autoscaling")).body
    assert group["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}


async def test_resources_have_their_short_names_and_categories(api: Api) -> None:
    deployments = (await resources(api, "/apis/apps/v1"))["deployments"]
    assert deployments["shortNames"] == ["deploy"]
    assert deployments["categories"] == ["all"]
    assert "watch" in deployments["verbs"]


@pytest.mark.parametrize(
    ("path", "name", "spoken"),
    [
        ("/api/v1", "pods/eviction", ("policy", "v1", "Eviction", ["create"])),
        ("/api/v1", "pods/status", (None, None, "Pod", ["get", "patch", "update"])),
        (
            "/api/v1",
            "serviceaccounts/token",
            ("authentication.k8s.io", "v1", "TokenRequest", ["create"]),
        ),
        (
            "/apis/apps/v1",
            "deployments/scale",
            ("autoscaling", "v1", "Scale", ["get", "patch", "update"]),
        ),
    ],
)
async def test_subresources_say_what_kind_they_speak(
    path: str, name: str, spoken: tuple[str | None, ...], api: Api
) -> None:
    found = (await resources(api, path))[name]
    assert (found.get("group"), found.get("version"), found["kind"], found["verbs"]) == spoken


async def test_one_document_has_everything(api: Api) -> None:
    groups = (await api.get("/apis")).body["groups"]
    answer = await api.get("/apis", accept=AGGREGATED)
    assert answer.headers.get("content-type") == AGGREGATED
    assert [item["metadata"]["name"] for item in answer.body["items"]] == [
        group["name"] for group in groups
    ]
    core = (await api.get("/api", accept=AGGREGATED)).body["items"][0]["versions"][0]
    plain = await resources(api, "/api/v1")
    assert {each["resource"] for each in core["resources"]} == {
        name for name in plain if "/" not in name
    }


async def test_a_client_that_has_the_document_is_told_so(api: Api) -> None:
    first = await api.get("/apis", accept=AGGREGATED)
    again = await api.get("/apis", accept=AGGREGATED, if_none_match=first.headers.get("etag"))
    assert (again.status, again.body) == (304, "")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (f"{AGGREGATED},{OLD},application/json", "APIGroupDiscoveryList"),
        (f"{OLD},application/json", "APIGroupList"),
        (f"application/json,{AGGREGATED}", "APIGroupList"),
        (f"application/vnd.kubernetes.protobuf,{AGGREGATED}", "APIGroupDiscoveryList"),
        ("*/*", "APIGroupList"),
    ],
)
async def test_the_first_form_that_can_be_served_is(accept: str, kind: str, api: Api) -> None:
    assert (await api.get("/apis", accept=accept)).body["kind"] == kind


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/apis", OLD),
        ("/apis/apps", AGGREGATED),
        ("/apis", "application/vnd.kubernetes.protobuf"),
    ],
)
async def test_what_cannot_be_served_is_not_acceptable(path: str, accept: str, api: Api) -> None:
    answer = await api.get(path, accept=accept)
    assert (answer.status, answer.body["reason"]) == (406, "NotAcceptable")


@pytest.mark.parametrize("path", ["/api/v2", "/apis/apps/v9"])
async def test_versions_that_are_not_served_are_not_found(path: str, api: Api) -> None:
    assert (await api.get(path)).body["reason"] == "NotFound"


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/nope/v1", "/nope"])
async def test_paths_of_nobody_are_plainly_not_found(path: str, api: Api) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.body) == (404, "404 page not found\n")
