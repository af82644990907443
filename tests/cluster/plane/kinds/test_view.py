"""Kinds that are served at a version other than the one in which they are kept."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from kvestigate.http.message import Response
from tests.cluster.plane.conftest import Api

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
METRICS = "autoscaling.alpha.kubernetes.io/metrics"


def autoscaler(name: str = "web", **spec: Any) -> dict[str, Any]:
    target = {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"}
    return {
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec},
    }


async def first_event(api: Api, path: str) -> Any:
    response = await api.server.handle(api.request("GET", f"{path}?watch=1"))
    assert isinstance(response, Response)
    body = response.body
    assert isinstance(body, AsyncGenerator)
    async with aclosing(body):
        return msgspec.json.decode((await anext(body)).splitlines()[0])


async def test_each_version_reads_what_the_other_wrote(api: Api) -> None:
    made = await api.post(V1, autoscaler(targetCPUUtilizationPercentage=33))
    assert made.body["apiVersion"] == "autoscaling/v1"
    assert made.body["spec"]["targetCPUUtilizationPercentage"] == 33

    stored = (await api.get(f"{V2}/web")).body
    assert stored["apiVersion"] == "autoscaling/v2"
    assert stored["metadata"]["uid"] == made.body["metadata"]["uid"]
    target = {"type": "Utilization", "averageUtilization": 33}
    assert stored["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]


async def test_what_the_older_version_lacks_survives_its_updates(api: Api) -> None:
    target = {"type": "AverageValue", "averageValue": "5"}
    metrics = [{"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}]
    await api.post(V2, autoscaler(metrics=metrics))

    shown = (await api.get(f"{V1}/web")).body
    assert METRICS in shown["metadata"]["annotations"]
    shown["spec"]["maxReplicas"] = 9
    changed = await api.put(f"{V1}/web", shown)

    assert changed.status == 200
    stored = (await api.get(f"{V2}/web")).body
    assert stored["spec"]["metrics"] == metrics
    assert stored["spec"]["maxReplicas"] == 9
    assert "annotations" not in stored["metadata"]


async def test_patches_apply_to_the_version_they_name(api: Api) -> None:
    await api.post(V2, autoscaler())
    steps = [{"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 60}]
    changed = await api.patch(f"{V1}/web", steps, "application/json-patch+json")

    assert changed.status == 200, changed.body
    stored = (await api.get(f"{V2}/web")).body
    assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 60


async def test_lists_and_watches_speak_the_version_that_was_asked(api: Api) -> None:
    await api.post(V2, autoscaler("a"))
    await api.post(V1, autoscaler("b"))

    for path, version in ((V1, "autoscaling/v1"), (V2, "autoscaling/v2")):
        listed = (await api.get(path)).body
        assert listed["apiVersion"] == version
        assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
        has_old_field = ["targetCPUUtilizationPercentage" in it["spec"] for it in listed["items"]]
        assert has_old_field == [version == "autoscaling/v1"] * 2
        assert all("kind" not in item for item in listed["items"])
        event = await first_event(api, path)
        assert event["type"] == "ADDED"
        assert event["object"]["apiVersion"] == version


async def test_objects_of_another_version_are_refused(api: Api) -> None:
    answer = await api.post(V1, {"apiVersion": "autoscaling/v2", **autoscaler()})
    assert answer.status == 400


async def test_mistakes_name_the_stored_kind(api: Api) -> None:
    answer = await api.post(V1, autoscaler(minReplicas=5))
    assert answer.status == 422
    causes = answer.body["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["spec.maxReplicas"]


@pytest.mark.parametrize(
    "text",
    ["nonsense", "[1]", "{}", '[{"pods":3}]', '[{"type":"Pods","pods":{"metricName":{"a":1}}}]'],
)
@pytest.mark.parametrize("name", ["metrics", "current-metrics", "behavior", "conditions"])
async def test_annotations_that_make_no_sense_are_dropped(api: Api, name: str, text: str) -> None:
    odd = autoscaler()
    carried = f"autoscaling.alpha.kubernetes.io/{name}"
    odd["metadata"]["annotations"] = {carried: text, "mine": "kept"}
    made = await api.post(V1, odd)
    assert made.status in (201, 422)
    if made.status == 201:
        assert made.body["metadata"]["annotations"] == {"mine": "kept"}


async def test_manifests_may_name_metrics_in_an_annotation(api: Api) -> None:
    requests = {"metricName": "requests", "targetAverageValue": "100"}
    old = autoscaler(targetCPUUtilizationPercentage=50)
    text = json.dumps([{"type": "Pods", "pods": requests}])
    old["metadata"]["annotations"] = {METRICS: text}
    assert (await api.post(V1, old)).status == 201

    pods, cpu = (await api.get(f"{V2}/web")).body["spec"]["metrics"]
    target = {"type": "AverageValue", "averageValue": "100"}
    assert pods == {"type": "Pods", "pods": {"metric": {"name": "requests"}, "target": target}}
    assert cpu["resource"]["target"]["averageUtilization"] == 50
    shown = (await api.get(f"{V1}/web")).body["metadata"]["annotations"][METRICS]
    assert json.loads(shown) == [{"type": "Pods", "pods": requests}]
