"""Devices of random claims: our scheduler and the real kube-scheduler before the same objects."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kvestigate.cluster.scheduler.runtime import Scheduler
from tests.bed import Object
from tests.cluster.scheduler.conftest import Bed, condition, node, pod
from tests.cluster.scheduler.device_cases import Case, cases
from tests.real.session import connected
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

OURS, THEIRS = "our-scheduler", "default-scheduler"
COUNT, SEED = 300, 22
_AT_ONCE = 16
_PATIENCE = 120.0
_FAILED = 'running "DynamicResources" filter plugin: '
_RUNTIME_ERROR = "CEL runtime error: "


@dataclass(frozen=True)
class Outcome:
    node: str
    message: str
    """Why the pod has no node."""
    allocations: tuple[Any, ...]
    """Of its claims, without what is random or tells the time."""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpstreamCluster]:
    directory = tmp_path_factory.mktemp("devices")
    with UpstreamCluster(binaries.find(), directory) as cluster:
        cluster.start_scheduler()
        with cluster.judge() as judge:
            path = "/api/v1/namespaces/default/serviceaccounts"
            judge.ensure(path, {"metadata": {"name": "default"}})
        yield cluster
    shutil.rmtree(directory / "etcd")


@pytest.fixture
async def bed(upstream: UpstreamCluster) -> AsyncIterator[Bed]:
    async with connected(upstream.admin_kubeconfig()) as api:
        yield Bed(api)


async def test_both_give_the_same_devices_for_the_same_reasons(bed: Bed) -> None:
    played = cases(COUNT, SEED)
    label = {"resource.kubernetes.io/admin-access": "true"}
    await bed.patch("namespaces", "default", {"metadata": {"labels": label}})
    await _furnish(bed, played)
    theirs = await _play(bed, played, THEIRS)
    async with Scheduler(bed.api, name=OURS):
        ours = await _play(bed, played, OURS)
    differing = {
        case.name: (ours[case.name], theirs[case.name])
        for case in played
        if not _alike(ours[case.name], theirs[case.name])
    }
    assert not differing, "\n".join(map(str, differing.items()))
    placed = sum(bool(each.node) for each in theirs.values())
    assert 0.3 * COUNT < placed < 0.8 * COUNT  # neither answer is rare


def _alike(ours: Outcome, theirs: Outcome) -> bool:
    if not ours.node:
        return (ours.node, ours.message) == (theirs.node, theirs.message)
    # Where two nodes suit equally, chance decides; devices follow from the node.
    return bool(theirs.node) and (
        ours.node != theirs.node or ours.allocations == theirs.allocations
    )


async def _furnish(bed: Bed, played: Iterable[Case]) -> None:
    """All that both schedulers see: nodes, slices, classes, and devices in use."""
    await _all(bed.create("nodes", each) for case in played for each in case.nodes)
    await _all(bed.create("resourceslices", each) for case in played for each in case.slices)
    await _all(bed.create("deviceclasses", each) for case in played for each in case.classes)
    await _all(bed.create("resourceclaims", case.held) for case in played if case.held)
    # Watches tell of objects in their order, so who knows these knows all.
    await bed.create("nodes", node("last"))
    pool = {"name": "last", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "last", "nodeName": "last", "pool": pool, "devices": [{"name": "d"}]}
    await bed.create("resourceslices", {"metadata": {"name": "last"}, "spec": spec})
    selector = {"cel": {"expression": 'device.driver == "last"'}}
    body = {"metadata": {"name": "last"}, "spec": {"selectors": [selector]}}
    await bed.create("deviceclasses", body)


async def _play(bed: Bed, played: list[Case], scheduler: str) -> dict[str, Outcome]:
    await _all(bed.create("resourceclaims", each) for case in played for each in case.claims)
    request = {"name": "r", "exactly": {"deviceClassName": "last"}}
    claim = {"metadata": {"name": "last"}, "spec": {"devices": {"requests": [request]}}}
    await bed.create("resourceclaims", claim)
    named = [{"name": "last", "resourceClaimName": "last"}]
    await bed.create("pods", pod("last", schedulerName=scheduler, resourceClaims=named))
    await bed.placed("last")
    await _all(bed.create("pods", case.pod(scheduler)) for case in played)
    names = [case.name for case in played]
    pods = await bed.until(
        "pods", lambda pods: all(_settled(pods.get(name)) for name in names), timeout=_PATIENCE
    )
    claims = await bed.all("resourceclaims")
    outcomes = {case.name: _outcome(case, pods[case.name], claims) for case in played}
    await _clear(bed, played)
    return outcomes


def _settled(pod: Object | None) -> bool:
    return pod is not None and bool(pod["spec"].get("nodeName") or condition(pod))


def _outcome(case: Case, pod: Object, claims: dict[str, Object]) -> Outcome:
    message = condition(pod).get("message", "")
    # What an expression fails of is said in the words of each implementation of CEL.
    message = message.partition(_RUNTIME_ERROR)[0]
    if message.startswith(_FAILED) and len(case.nodes) > 1:
        message = _FAILED  # kube-scheduler looks at nodes in parallel: any may be the first to fail
    given = [claims[each["metadata"]["name"]].get("status", {}) for each in case.claims]
    return Outcome(pod["spec"].get("nodeName", ""), message, tuple(map(_shown, given)))


def _shown(status: Object) -> Any:
    allocation = status.get("allocation")
    if allocation is None:
        return None
    results = [
        {name: value for name, value in each.items() if name != "shareID"}
        | {"shared": "shareID" in each}
        for each in allocation["devices"]["results"]
    ]
    return results, allocation["devices"].get("config"), allocation.get("nodeSelector")


async def _clear(bed: Bed, played: Iterable[Case]) -> None:
    names = [each["metadata"]["name"] for case in played for each in case.claims]
    await _all(bed.delete("pods", name) for name in ["last", *(case.name for case in played)])
    await bed.until("pods", lambda pods: not pods)
    await _all(_drop(bed, name) for name in ["last", *names])
    await bed.until("resourceclaims", lambda claims: not set(names) & claims.keys())


async def _drop(bed: Bed, name: str) -> None:
    gone = {"allocation": None, "reservedFor": None}
    await bed.patch("resourceclaims", name, {"status": gone}, "status")
    await bed.patch("resourceclaims", name, {"metadata": {"finalizers": None}})
    await bed.delete("resourceclaims", name)


async def _all(work: Iterable[Awaitable[Any]]) -> None:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(each: Awaitable[Any]) -> None:
        async with room:
            await each

    await asyncio.gather(*map(one, work))
