"""pods/ephemeralcontainers and pods/resize."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api
from tests.cluster.plane.verbs.subresources.conftest import PODS, MakePod

STRATEGIC = "application/strategic-merge-patch+json"
ONE_CPU = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}


def ephemeral(*names: str, image: str = "busybox") -> dict[str, Any]:
    return {"spec": {"ephemeralContainers": [{"name": name, "image": image} for name in names]}}


def resize(**resources: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": resources}]}}


async def test_ephemeral_containers_are_added_and_nothing_else(api: Api, make_pod: MakePod) -> None:
    before = await make_pod("web")
    change = ephemeral("debug") | {"metadata": {"labels": {"sneaked": "in"}}}

    changed = await api.patch(f"{PODS}/web/ephemeralcontainers", change, STRATEGIC)

    assert changed.status == 200
    [added] = changed.body["spec"].pop("ephemeralContainers")
    assert (added["name"], added["image"]) == ("debug", "busybox")
    assert added["terminationMessagePath"] == "/dev/termination-log"
    assert changed.body["spec"] == before["spec"]
    assert "sneaked" not in changed.body["metadata"].get("labels", {})
    assert changed.body["metadata"]["generation"] == before["metadata"]["generation"] + 1


@pytest.mark.parametrize(
    ("change", "media", "field", "message"),
    [
        (ephemeral("main"), STRATEGIC, "[0].name", 'Duplicate value: "main"'),
        (
            ephemeral("other"),
            "application/merge-patch+json",
            "",
            'Forbidden: existing ephemeral containers "debug" may not be removed\n',
        ),
        (
            ephemeral("debug", image="other"),
            STRATEGIC,
            "",
            'Forbidden: existing ephemeral containers "debug" may not be changed\n',
        ),
    ],
)
async def test_ephemeral_containers_stay_as_they_are(
    api: Api, make_pod: MakePod, change: Any, media: str, field: str, message: str
) -> None:
    await make_pod("web")
    path = f"{PODS}/web/ephemeralcontainers"
    assert (await api.patch(path, ephemeral("debug"), STRATEGIC)).status == 200

    refused = await api.patch(path, change, media)

    assert refused.status == 422
    [cause] = refused.body["details"]["causes"]
    assert cause["field"] == f"spec.ephemeralContainers{field}"
    assert cause["message"].startswith(message)


async def test_the_pod_itself_takes_no_ephemeral_containers(api: Api, make_pod: MakePod) -> None:
    await make_pod("web")

    assert (await api.patch(f"{PODS}/web", ephemeral("debug"), STRATEGIC)).status == 422


async def test_a_resize_changes_resources_and_nothing_else(api: Api, make_pod: MakePod) -> None:
    container = {"name": "main", "image": "image", "resources": ONE_CPU}
    before = await make_pod("web", containers=[container])
    change = resize(requests={"cpu": "2"}, limits={"cpu": "2"})
    change["spec"]["containers"][0]["image"] = "sneaked-in"

    changed = await api.patch(f"{PODS}/web/resize", change, STRATEGIC)

    assert changed.status == 200
    [after] = changed.body["spec"]["containers"]
    assert after["resources"] == {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    assert after["image"] == "image"
    assert changed.body["metadata"]["generation"] == before["metadata"]["generation"] + 1


@pytest.mark.parametrize(
    ("resources", "field", "message"),
    [
        (
            {"requests": {"cpu": "3"}},
            "spec.containers[0].resources.requests",
            'Invalid value: "3": must be less than or equal to cpu limit of 1',
        ),
        (
            {"requests": {"ephemeral-storage": "3"}},
            "spec",
            "Forbidden: only cpu and memory resources are mutable",
        ),
        (
            {"limits": None},
            "spec.containers[0].resources.limits",
            "Forbidden: resource limits cannot be removed",
        ),
        (
            {"requests": {"memory": "4"}, "limits": {"memory": "4"}},
            "spec",
            'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        ),
    ],
)
async def test_what_cannot_be_resized(
    api: Api, make_pod: MakePod, resources: Any, field: str, message: str
) -> None:
    await make_pod("web", containers=[{"name": "main", "image": "image", "resources": ONE_CPU}])

    refused = await api.patch(f"{PODS}/web/resize", resize(**resources), STRATEGIC)

    assert refused.status == 422
    assert refused.body["details"]["causes"] == [
        {"reason": refused.body["details"]["causes"][0]["reason"], "field": field}
        | {"message": message}
    ]


@pytest.mark.parametrize("part", ["ephemeralcontainers", "resize"])
async def test_reading_a_part_gives_the_pod(api: Api, make_pod: MakePod, part: str) -> None:
    pod = await make_pod("web")

    assert (await api.get(f"{PODS}/web/{part}")).body == pod
