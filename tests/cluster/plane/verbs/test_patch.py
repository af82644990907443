"""Patches: what they leave alone stays as it is stored, what they change is judged as ever."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api

PODS = "/api/v1/namespaces/default/pods"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture
async def pod(api: Api) -> dict[str, Any]:
    made = await api.post(
        PODS,
        {
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "one"}]},
        },
    )
    assert made.status == 201
    body: dict[str, Any] = made.body
    return body


def _settled(pod: dict[str, Any]) -> dict[str, Any]:
    """Without what every write changes."""
    changing = ("resourceVersion", "managedFields", "generation")
    metadata = {name: value for name, value in pod["metadata"].items() if name not in changing}
    return {**pod, "metadata": metadata}


async def test_a_patch_of_metadata_leaves_the_rest_as_it_is(api: Api, pod: dict[str, Any]) -> None:
    patched = await api.patch(f"{PODS}/web", {"metadata": {"annotations": {"a": "1"}}})
    assert patched.status == 200
    expected = _settled(pod)
    expected["metadata"]["annotations"] = {"a": "1"}
    assert _settled(patched.body) == expected
    assert (await api.get(f"{PODS}/web")).body == patched.body


@pytest.mark.parametrize("nothing", [None, {}])
async def test_what_a_patch_empties_is_not_stored(
    api: Api, pod: dict[str, Any], nothing: None
) -> None:
    patched = await api.patch(f"{PODS}/web", {"metadata": {"labels": {"app": None}}})
    assert "labels" not in patched.body["metadata"]
    patched = await api.patch(f"{PODS}/web", {"metadata": {"annotations": nothing}})
    assert "annotations" not in patched.body["metadata"]


async def test_a_null_that_a_patch_adds_is_not_stored(api: Api, pod: dict[str, Any]) -> None:
    steps = [
        {"op": "add", "path": "/metadata/annotations", "value": None},
        {"op": "add", "path": "/spec/nodeSelector", "value": None},
        {"op": "add", "path": "/status", "value": None},
    ]
    patched = await api.patch(f"{PODS}/web", steps, JSON)
    assert patched.status == 200
    assert _settled(patched.body) == _settled(pod)


@pytest.mark.parametrize("media", ["application/merge-patch+json", STRATEGIC])
@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        ({"metadata": {"lables": {}}}, "metadata.lables"),
        ({"sepc": {}}, "sepc"),
        ({"spec": {"nodename": "a"}}, "spec.nodename"),
    ],
)
async def test_unknown_fields_of_a_patch_are_told(
    api: Api, pod: dict[str, Any], change: Any, unknown: str, media: str
) -> None:
    answer = await api.patch(f"{PODS}/web?fieldValidation=Strict", change, media)
    assert answer.status == 422
    assert f'unknown field "{unknown}"' in answer.body["message"]


async def test_mistyped_metadata_in_a_patch_is_refused(api: Api, pod: dict[str, Any]) -> None:
    answer = await api.patch(f"{PODS}/web", {"metadata": {"labels": {"app": 7}}})
    assert answer.status == 422
    assert "cannot unmarshal number into Go struct field" in answer.body["message"]


async def test_a_spec_that_became_invalid_is_refused_again_and_again(
    api: Api, pod: dict[str, Any]
) -> None:
    for _ in range(2):
        answer = await api.patch(f"{PODS}/web", {"spec": {"activeDeadlineSeconds": -1}})
        assert answer.status == 422
        assert answer.body["details"]["causes"][0]["field"] == "spec.activeDeadlineSeconds"


async def test_a_patch_that_changes_nothing_makes_no_revision(
    api: Api, pod: dict[str, Any]
) -> None:
    patched = await api.patch(f"{PODS}/web", {"metadata": {"labels": {"app": "web"}}})
    assert patched.body == pod


@pytest.mark.parametrize(
    ("collection", "obj"),
    [
        (
            "/api/v1/namespaces/default/pods",
            {
                "spec": {
                    "containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 1}]}]
                }
            },
        ),
        ("/api/v1/namespaces/default/configmaps", {"data": {"a": "b"}}),
        ("/api/v1/namespaces/default/secrets", {"stringData": {"a": "b"}}),
        ("/api/v1/nodes", {"spec": {"podCIDR": "10.0.0.0/24"}, "status": {"capacity": {"cpu": 2}}}),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 9}},
        ),
    ],
)
async def test_a_patch_changes_what_it_names_and_nothing_else(
    api: Api, collection: str, obj: dict[str, Any]
) -> None:
    made = (await api.post(collection, {"metadata": {"name": "x"}, **obj})).body
    one = f"{collection}/x"
    changed = (await api.patch(one, {"metadata": {"labels": {"new": "label"}}})).body
    assert changed == (await api.get(one)).body
    assert changed["metadata"]["labels"] == {"new": "label"}
    for before in (made, changed):
        for server_set in ("labels", "managedFields", "resourceVersion"):
            before["metadata"].pop(server_set, None)
    assert changed == made
