"""Claimed GPUs with every part swapped for the real one: the same devices each time.

The scenarios are brought as objects alone: nodes without kubelets, and the slices of their GPUs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.api import PODS, Api
from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.controllers.runtime import Manager
from kvestigate.cluster.scenarios.library import objects_of
from kvestigate.cluster.scenarios.objects import resource_of
from kvestigate.cluster.scheduler.runtime import Scheduler
from kvestigate.errors import AlreadyExists
from kvestigate.kube import builtins
from tests.real.session import connected
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.plane import ControlledPlane

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

Object = dict[str, Any]

OURS = (
    "serviceaccount-controller",
    "replicaset-controller",
    "deployment-controller",
    "daemonset-controller",
    "resourceclaim-controller",
)
PATIENCE = 60.0
CLAIMS = builtins.resource("resourceclaims")


@asynccontextmanager
async def theirs_on_a_plane(directory: Path) -> AsyncIterator[Api]:
    """kube-scheduler and kube-controller-manager, on a plane."""
    with ControlledPlane(binaries.find(), directory) as plane:
        plane.start_controllers()
        plane.start_scheduler()
        async with connected(plane.admin_kubeconfig()) as api:
            yield api


@asynccontextmanager
async def ours_on_kubernetes(directory: Path) -> AsyncIterator[Api]:
    """Our scheduler and controllers, under kube-apiserver."""
    with UpstreamCluster(binaries.find(), directory) as kubernetes:
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(connected(kubernetes.admin_kubeconfig()))
            chosen = {name: CONTROLLERS[name] for name in OURS}
            await stack.enter_async_context(Manager(api, chosen))
            await stack.enter_async_context(Scheduler(api))
            yield api


async def seed(api: Api, scenario: str) -> None:
    for made in objects_of(scenario):
        resource, metadata = resource_of(made), made["metadata"]
        await api.create(resource, made, namespace=metadata.get("namespace"), type=bytes)
        if made["kind"] == "Node":
            # New nodes are tainted until the node controller, which is not here, finds them ready.
            await api.patch(resource, metadata["name"], {"spec": {"taints": None}}, type=bytes)
        if made["kind"] == "Namespace":
            account = {"metadata": {"name": "default", "namespace": metadata["name"]}}
            try:
                await api.create(builtins.resource("serviceaccounts"), account, type=bytes)
            except AlreadyExists:
                pass


async def settled(api: Api, enough: Callable[[list[Object]], bool]) -> list[Object]:
    known: dict[str, Object] = {}
    async with asyncio.timeout(PATIENCE), api.watch(PODS, type=Object) as events:
        async for event in events:
            known[event.object["metadata"]["uid"]] = event.object
            if event.type == "DELETED":
                del known[event.object["metadata"]["uid"]]
            if enough(list(known.values())):
                return list(known.values())
    raise AssertionError("the watch ended")


def placed(count: int, refused: int = 0) -> Callable[[list[Object]], bool]:
    def enough(pods: list[Object]) -> bool:
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        waiting = [pod for pod in pods if pod not in bound and pod["status"].get("conditions")]
        return (len(bound), len(waiting)) == (count, refused)

    return enough


async def given(api: Api, by: Callable[[Object], str]) -> Counter[tuple[str, str]]:
    """How often a workload has a device that is shown so."""
    found: Counter[tuple[str, str]] = Counter()
    for claim in (await api.list(CLAIMS, type=Object)).items:
        name = claim["metadata"]["name"]
        owners = claim["metadata"].get("ownerReferences") or [{"name": name}]
        workload = owners[0]["name"].partition("-")[0]
        allocation = (claim.get("status") or {}).get("allocation") or {"devices": {"results": ()}}
        for result in allocation["devices"]["results"]:
            found[workload, by(result)] += 1
    return found


BEDS = [
    pytest.param(theirs_on_a_plane, id="kube-scheduler-on-a-plane"),
    pytest.param(ours_on_kubernetes, id="our-scheduler-under-kube-apiserver"),
]


@pytest.mark.parametrize("cluster", BEDS)
async def test_divided_gpus_and_whole_ones(cluster: Any, tmp_path: Path) -> None:
    async with cluster(tmp_path) as api:
        await seed(api, "mixed-gpus")
        await settled(api, placed(11))
        devices = await given(api, lambda result: f"{result['pool']}/{result['device']}")
    assert devices == {
        ("whole", "dra-1/gpu-0"): 1,
        ("whole", "dra-1/gpu-1"): 1,
        ("small", "dra-mig-1/gpu-0-mig-19-6-1"): 1,
        ("small", "dra-mig-1/gpu-1-mig-19-6-1"): 1,
        ("half", "dra-mig-1/gpu-0-mig-9-0-4"): 1,
    }


@pytest.mark.parametrize("cluster", BEDS)
async def test_alternatives_shared_claims_and_admin_access(cluster: Any, tmp_path: Path) -> None:
    async with cluster(tmp_path) as api:
        await seed(api, "dra-fleet")
        pods = await settled(api, placed(13, refused=1))
        requests = await given(api, lambda result: result["request"])
        [waiting] = [pod for pod in pods if not pod["spec"].get("nodeName")]
        await api.delete(PODS, "notebook-ada", namespace="research", grace_seconds=0)
        await api.delete(PODS, "notebook-grace", namespace="research", grace_seconds=0)
        freed = await _freed(api, "notebooks")
    assert requests == {
        ("chat", "gpu"): 4,
        ("finetune", "gpu/large"): 2,
        ("finetune", "gpu/two"): 2,
        ("notebooks", "gpu"): 1,
        ("dcgm", "gpus"): 3 * 4 + 2,
    }
    [condition] = waiting["status"]["conditions"]
    assert (waiting["metadata"]["name"], condition["message"]) == (
        "pretrain",
        "0/4 nodes are available: 4 cannot allocate all claims. still not schedulable, "
        "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
    )
    assert not freed["metadata"].get("finalizers")
    assert not freed["status"].get("reservedFor")


async def _freed(api: Api, name: str) -> Object:
    """The claim, when its devices are free and nothing keeps it."""
    async with asyncio.timeout(PATIENCE), api.watch(CLAIMS, type=Object) as events:
        async for event in events:
            claim: Object = event.object
            held = claim["metadata"].get("finalizers") or claim["status"].get("allocation")
            if claim["metadata"]["name"] == name and not held:
                return claim
    raise AssertionError("the watch ended")
