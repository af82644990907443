"""pods/binding and the older bindings resource."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api
from tests.cluster.plane.verbs.subresources.conftest import PODS, MakePod

BINDINGS = "/api/v1/namespaces/default/bindings"


def binding(pod: str, node: str = "n1", **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": pod, **metadata},
        "target": {"kind": "Node", "name": node},
    }


@pytest.mark.parametrize("path", [f"{PODS}/web/binding", BINDINGS])
async def test_a_bound_pod_has_its_node_and_says_so(api: Api, make_pod: MakePod, path: str) -> None:
    await make_pod("web", labels={"a": "b"})
    sent = binding("web", annotations={"why": "room"}, labels={"c": "d"})

    bound = await api.post(path, sent)

    assert bound.status == 201
    assert bound.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    pod = (await api.get(f"{PODS}/web")).body
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["metadata"]["annotations"] == {"why": "room"}
    assert pod["metadata"]["labels"] == {"a": "b", "c": "d"}
    [scheduled] = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
    assert scheduled["status"] == "True"
    assert scheduled["lastTransitionTime"]


async def test_a_pod_is_bound_only_once(api: Api, make_pod: MakePod) -> None:
    await make_pod("web")
    await api.post(f"{PODS}/web/binding", binding("web"))

    again = await api.post(f"{PODS}/web/binding", binding("web", "n2"))

    assert again.status == 409
    assert again.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to '
        'node "n1"'
    )
    assert again.body["details"] == {"name": "web", "kind": "pods/binding"}


async def test_gates_keep_a_pod_unbound(api: Api, make_pod: MakePod) -> None:
    await make_pod("gated", schedulingGates=[{"name": "example.com/wait"}])

    refused = await api.post(f"{PODS}/gated/binding", binding("gated"))

    assert refused.status == 409
    assert "pod gated has non-empty .spec.schedulingGates" in refused.body["message"]


async def test_a_dry_run_binds_nothing(api: Api, make_pod: MakePod) -> None:
    await make_pod("web")

    tried = await api.post(f"{PODS}/web/binding?dryRun=All", binding("web"))

    assert tried.status == 201
    assert "nodeName" not in (await api.get(f"{PODS}/web")).body["spec"]


@pytest.mark.parametrize(
    ("path", "sent", "status", "message"),
    [
        ("web/binding", binding("other"), 400, "name in URL does not match name in Binding object"),
        ("web/binding", binding("web", ""), 500, "target.name: Required value"),
        (
            "web/binding",
            {**binding("web"), "target": {"kind": "Pod", "name": "n"}},
            500,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
        (
            "web/binding",
            binding("web", namespace="elsewhere"),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ("missing/binding", binding("missing"), 404, 'pods "missing" not found'),
        (
            "web/binding?fieldValidation=Strict",
            {**binding("web"), "foo": 1},
            400,
            'Binding in version "v1" cannot be handled as a Binding: strict decoding error: '
            'unknown field "foo"',
        ),
    ],
)
async def test_what_cannot_be_bound(
    api: Api, make_pod: MakePod, path: str, sent: Any, status: int, message: str
) -> None:
    await make_pod("web")

    refused = await api.post(f"{PODS}/{path}", sent)

    assert (refused.status, refused.body["message"]) == (status, message)


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_a_binding_for_another_incarnation_is_refused(
    api: Api, make_pod: MakePod, field: str
) -> None:
    await make_pod("web")

    refused = await api.post(f"{PODS}/web/binding", binding("web", **{field: "1"}))

    assert refused.status == 409
    assert "Precondition failed" in refused.body["message"]


async def test_only_creation_is_possible(api: Api, make_pod: MakePod) -> None:
    await make_pod("web")

    assert (await api.get(f"{PODS}/web/binding")).status == 405
    assert (await api.get(BINDINGS)).status == 405


async def test_a_legacy_binding_must_name_its_pod(api: Api) -> None:
    refused = await api.post(BINDINGS, {"target": {"kind": "Node", "name": "n1"}})

    assert (refused.status, refused.body["message"]) == (400, "Name parameter required.")


async def test_a_bound_pod_is_found_by_its_node(api: Api, make_pod: MakePod) -> None:
    await make_pod("web")
    await make_pod("idle")
    await api.post(f"{PODS}/web/binding", binding("web"))

    found = (await api.get(f"{PODS}?fieldSelector=spec.nodeName%3Dn1")).body

    assert [item["metadata"]["name"] for item in found["items"]] == ["web"]
