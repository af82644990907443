"""The scale subresource of the built-in workloads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import MERGE, Api

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

APPS = "/apis/apps/v1/namespaces/default"
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def workload(api: Api, collection: str, **spec: Any) -> str:
    """The path of a new workload's scale."""
    selector = {"matchLabels": {"a": "b"}}
    spec = {"replicas": 2, "selector": selector, "template": TEMPLATE, **spec}
    made = await api.post(collection, {"metadata": {"name": "web"}, "spec": spec})
    assert made.status == 201, made.body
    return f"{collection}/web/scale"


def scale(replicas: int, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", **metadata}, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("collection", "spec", "selector"),
    [
        (f"{APPS}/deployments", {}, "a=b"),
        (f"{APPS}/replicasets", {}, "a=b"),
        (f"{APPS}/statefulsets", {"serviceName": "web"}, "a=b"),
        ("/api/v1/namespaces/default/replicationcontrollers", {"selector": {"a": "b"}}, "a=b"),
        (
            f"{APPS}/deployments",
            {
                "selector": {
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [
                        {"key": "a", "operator": "In", "values": ["c", "b"]},
                        {"key": "z", "operator": "DoesNotExist"},
                    ],
                }
            },
            "a=b,a in (b,c),!z",
        ),
    ],
)
async def test_a_scale_shows_the_workload(
    api: Api, collection: str, spec: dict[str, Any], selector: str
) -> None:
    path = await workload(api, collection, **spec)
    parent = (await api.get(f"{collection}/web")).body

    shown = await api.get(path)

    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    assert shown.status == 200
    assert shown.body == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: parent["metadata"][name] for name in kept},
        "spec": {"replicas": 2},
        "status": {"replicas": 0, "selector": selector},
    }


@pytest.mark.parametrize(
    ("media", "change"),
    [
        ("", scale(5)),
        (MERGE, {"spec": {"replicas": 5}}),
        (STRATEGIC, {"spec": {"replicas": 5}}),
        (JSON_PATCH, [{"op": "replace", "path": "/spec/replicas", "value": 5}]),
        (MERGE, {"metadata": {"labels": {"x": "y"}}, "spec": {"replicas": 5}}),
    ],
)
async def test_only_the_replicas_change(api: Api, media: str, change: Any) -> None:
    path = await workload(api, f"{APPS}/deployments")
    before = (await api.get(f"{APPS}/deployments/web")).body

    changed = await (api.patch(path, change, media) if media else api.put(path, change))

    assert (changed.status, changed.body["spec"]) == (200, {"replicas": 5})
    after = (await api.get(f"{APPS}/deployments/web")).body
    assert after["spec"] == {**before["spec"], "replicas": 5}
    assert after["metadata"].get("labels") == before["metadata"].get("labels")
    assert changed.body["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


async def test_a_workload_can_be_scaled_to_nothing(api: Api) -> None:
    path = await workload(api, f"{APPS}/deployments")

    changed = await api.put(path, scale(0))

    assert (changed.status, changed.body["spec"]) == (200, {})
    assert (await api.get(f"{APPS}/deployments/web")).body["spec"]["replicas"] == 0


async def test_a_dry_run_shows_and_keeps_nothing(api: Api) -> None:
    path = await workload(api, f"{APPS}/deployments")

    tried = await api.patch(f"{path}?dryRun=All", {"spec": {"replicas": 9}})

    assert (tried.status, tried.body["spec"]) == (200, {"replicas": 9})
    assert (await api.get(path)).body["spec"] == {"replicas": 2}


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (
            scale(-1),
            422,
            'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be '
            "greater than or equal to 0",
        ),
        (
            {"spec": {"replicas": 1}},
            400,
            "the name of the object (web based on URL) was undeterminable: name must be provided",
        ),
        (
            scale(1, name="other"),
            400,
            "the name of the object (other) does not match the name on the URL (web)",
        ),
        (
            scale(1, resourceVersion="1"),
            409,
            'Operation cannot be fulfilled on deployments.apps "web": the object has been '
            "modified; please apply your changes to the latest version and try again",
        ),
    ],
)
async def test_what_cannot_be_scaled(api: Api, sent: Any, status: int, message: str) -> None:
    path = await workload(api, f"{APPS}/deployments")

    refused = await api.put(path, sent)

    assert (refused.status, refused.body["message"]) == (status, message)
    assert (await api.get(path)).body["spec"] == {"replicas": 2}


async def test_the_uid_of_another_incarnation_is_refused(api: Api) -> None:
    path = await workload(api, f"{APPS}/deployments")

    refused = await api.put(path, scale(1, uid="other"))

    assert refused.status == 409
    assert "UID in precondition: other" in refused.body["message"]


async def test_what_is_not_there_has_no_scale(api: Api) -> None:
    missing = await api.get(f"{APPS}/deployments/web/scale")

    assert (missing.status, missing.body["message"]) == (404, 'deployments.apps "web" not found')


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_scale_is_neither_made_nor_deleted(api: Api, method: str) -> None:
    path = await workload(api, f"{APPS}/deployments")

    assert (await api.call(method, path, {})).status == 405


async def test_daemonsets_have_no_scale(api: Api) -> None:
    assert (await api.get(f"{APPS}/daemonsets/web/scale")).status == 404


async def test_a_scale_has_columns_of_its_own(api: Api) -> None:
    path = await workload(api, f"{APPS}/deployments")

    shown = await api.get(path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    columns = [column["name"] for column in shown.body["columnDefinitions"]]
    [row] = shown.body["rows"]
    assert columns == ["Name", "Desired", "Available", "Age"]
    assert row["cells"][:3] == ["web", 2, 0]
