"""Scenarios on planes: simulated pods crash, wait and fail as they do on nodes with processes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.cluster.plane.front.serving import Listen, ServeOptions, serving
from kvestigate.cluster.scenarios.library import objects_of
from kvestigate.cluster.scenarios.objects import resource_of
from kvestigate.cluster.workforce.registry import start_workers
from kvestigate.errors import AlreadyExists
from kvestigate.kube import builtins
from tests.cluster.workforce.conftest import PODS
from tests.cluster.workforce.test_serving import client

ACCOUNTS = builtins.resource("serviceaccounts")


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Api]:
    """A virtual plane."""
    workers = start_workers(controllers=False, nodes=1)
    options = ServeOptions(tmp_path, Listen(port=0), memory=True, workers=workers)
    async with serving(options) as served:
        await client(served).request(
            "POST", "/clusters", body=b'{"id": "lab", "clock": "virtual", "seed": 7}'
        )
        yield client(served, "/clusters/lab/control-plane")


async def step(api: Api, seconds: int = 120) -> None:
    await api.request("POST", "/step", body=b'{"seconds": %d}' % seconds)


async def pods_by_app(api: Api, namespace: str) -> dict[str, Any]:
    pods = await listed(api, f"/api/v1/namespaces/{namespace}/pods")
    return {
        pod["metadata"]["labels"].get("app") or pod["metadata"]["labels"]["job-name"]: pod
        for pod in pods
    }


async def listed(api: Api, path: str) -> list[Any]:
    items: list[Any] = json.loads(await api.request("GET", path))["items"]
    return items


async def text(api: Api, path: str, query: str = "") -> str:
    return (await api.request("GET", path, query=query, accept="*/*")).decode()


def state(pod: Any) -> Any:
    return pod["status"]["containerStatuses"][0]["state"]


async def test_a_scenario_keeps_all_its_faults(lab: Api) -> None:
    for manifest in objects_of("broken-app"):
        try:
            await lab.create(resource_of(manifest), manifest, type=bytes)
        except AlreadyExists:
            pass
        if manifest["kind"] == "Namespace":
            name = manifest["metadata"]["name"]
            account = {"metadata": {"name": "default", "namespace": name}}
            await lab.create(ACCOUNTS, account, type=bytes)
    await step(lab)
    pods = await pods_by_app(lab, "shop")
    assert state(pods["orders"])["waiting"]["reason"] == "CrashLoopBackOff"
    last = pods["orders"]["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (1, "Error")
    assert state(pods["pricing"])["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": 'configmap "shop-setings" not found',
    }
    assert pods["migrate"]["status"]["phase"] == "Failed"
    assert state(pods["migrate"])["terminated"]["exitCode"] == 3
    assert state(pods["cart"])["waiting"]["reason"] == "ImagePullBackOff"
    assert pods["recommender"]["status"]["phase"] == "Pending"
    assert pods["search"]["status"]["phase"] == "Pending"
    assert pods["analytics"]["status"]["phase"] == "Pending"
    assert not pods["payments"]["status"]["containerStatuses"][0]["ready"]
    assert pods["frontend"]["status"]["phase"] == "Running"
    name = pods["orders"]["metadata"]["name"]
    path = f"/api/v1/namespaces/shop/pods/{name}/log"
    for query in ("", "previous=true"):
        log = await text(lab, path, query)
        assert log == "orders 3.1 starting\nfatal: DATABASE_URL is not set\n"


async def test_the_log_of_a_simulated_pod_is_as_long_as_its_time(lab: Api) -> None:
    script = "echo started; sleep 60; echo 'epoch 1'; sleep 600; echo done"
    containers = [{"name": "main", "image": "train:1", "command": ["sh", "-c", script]}]
    await lab.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers}})
    await step(lab, 10)
    path = "/api/v1/namespaces/default/pods/p/log"
    assert await text(lab, path) == "started\n"
    await step(lab, 100)
    assert await text(lab, path) == "started\nepoch 1\n"
    assert await text(lab, path, "tailLines=1") == "epoch 1\n"


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "gone"}}]},
            "FailedMount",
            'MountVolume.SetUp failed for volume "v" : secret "gone" not found',
        ),
        ({"containers": [{"name": "main", "image": "Bad:1"}]}, "InspectFailed", "Failed to apply"),
    ],
)
async def test_missing_references_are_events(
    lab: Api, spec: Any, reason: str, message: str
) -> None:
    containers = [{"name": "main", "image": "web:1"}]
    await lab.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}})
    await step(lab)
    found = await listed(lab, "/api/v1/namespaces/default/events")
    events = {event["reason"]: event["message"] for event in found}
    assert events[reason].startswith(message)
    [found_pod] = await listed(lab, "/api/v1/namespaces/default/pods")
    assert found_pod["status"]["phase"] == "Pending"


async def test_commands_run_in_simulated_pods(lab: Api) -> None:
    containers = [{"name": "main", "image": "web:1", "env": [{"name": "MODE", "value": "prod"}]}]
    await lab.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers}})
    await step(lab, 10)
    async with lab.exec("p", ["sh", "-c", "echo $MODE; exit 3"]) as session:
        output = [each.data async for each in session]
        assert b"".join(output) == b"prod\n"


@pytest.mark.parametrize(
    ("ports", "ready"),
    [([], True), ([{"containerPort": 8080}], True), ([{"containerPort": 80}], False)],
)
@pytest.mark.parametrize("probe", ["httpGet", "tcpSocket"])
async def test_probes_reach_the_ports_that_a_simulated_container_declares(
    lab: Api, probe: str, ports: list[Any], ready: bool
) -> None:
    container = {"name": "main", "image": "web:1", "ports": ports}
    probing = {"readinessProbe": {probe: {"port": 8080}, "failureThreshold": 1}}
    spec = {"containers": [container | probing]}
    await lab.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    await step(lab, 30)
    [pod] = await listed(lab, "/api/v1/namespaces/default/pods")
    assert pod["status"]["containerStatuses"][0]["ready"] is ready
    events = await listed(lab, "/api/v1/namespaces/default/events")
    refused = [event["message"] for event in events if event["reason"] == "Unhealthy"]
    assert all("connect: connection refused" in message for message in refused)
    assert bool(refused) is not ready
