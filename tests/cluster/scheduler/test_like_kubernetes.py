"""Our scheduler and the real kube-scheduler before the same clusters, on one API server."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.client.api import PODS
from kvestigate.client.call import Selection
from kvestigate.cluster.scheduler.runtime import Scheduler
from kvestigate.kube import builtins
from tests.bed import Object, Objects
from tests.cluster.scheduler.conftest import Bed, condition, pod
from tests.cluster.scheduler.scenarios import (
    EXPECTED,
    PRIORITIES,
    SCENARIOS,
    Outcome,
    Scenario,
    names_node,
)
from tests.real.session import connected
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

OURS, THEIRS = "our-scheduler", "default-scheduler"


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpstreamCluster]:
    """An API server and a scheduler; no controllers, which would taint nodes without kubelets."""
    directory = tmp_path_factory.mktemp("scheduler")
    with UpstreamCluster(binaries.find(), directory) as cluster:
        cluster.start_scheduler()
        with cluster.judge() as judge:
            path = "/api/v1/namespaces/default/serviceaccounts"
            judge.ensure(path, {"metadata": {"name": "default"}})
            for name, value in PRIORITIES.items():
                body: Object = {"metadata": {"name": name}, "value": value}
                if name == "polite":
                    body["preemptionPolicy"] = "Never"
                judge.ensure("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        yield cluster
    shutil.rmtree(directory / "etcd")


@pytest.fixture
async def bed(upstream: UpstreamCluster) -> AsyncIterator[Bed]:
    async with connected(upstream.admin_kubeconfig()) as api:
        yield Bed(api)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_both_do_the_same(bed: Bed, scenario: Scenario) -> None:
    theirs = await _play(bed, scenario, THEIRS)
    async with Scheduler(bed.api, name=OURS):
        ours = await _play(bed, scenario, OURS)
    assert ours == theirs
    assert ours == EXPECTED[scenario.name]


async def _play(bed: Bed, scenario: Scenario, scheduler: str) -> Outcome:
    await _clear(bed)
    for kind, body in scenario.others:
        await bed.create(kind, body)
    for node in scenario.nodes:
        await bed.create("nodes", node)
    while scenario.nodes and not await _knows_all(bed, scenario.nodes, scheduler):
        pass
    for present in scenario.present:
        await bed.create("pods", present)
    subject = {**scenario.pod, "spec": {**scenario.pod["spec"], "schedulerName": scheduler}}
    name = subject["metadata"]["name"]
    await bed.create("pods", subject)
    pods = await bed.until("pods", lambda pods: _settled(pods, name))
    outcome = _outcome(pods, name)
    await _clear(bed)
    return outcome


async def _knows_all(bed: Bed, nodes: Sequence[Object], scheduler: str) -> bool:
    """Whether a pod for the last node shows that the scheduler has heard of it, and so of all:
    it hears of nodes in their order, but of pods by another way."""
    probe = pod("probe", affinity=names_node(nodes[-1]["metadata"]["name"]))
    probe["spec"] |= {"schedulerName": scheduler, "tolerations": [{"operator": "Exists"}]}
    await bed.create("pods", probe)
    found = await bed.until("pods", lambda pods: _settled(pods, "probe"))
    outcome = _outcome(found, "probe")
    await bed.api.delete(PODS, "probe", namespace=bed.namespace, grace_seconds=0)
    await bed.until("pods", lambda pods: "probe" not in pods)
    return bool(outcome.node) or outcome.message.startswith(f"0/{len(nodes)} ")


def _settled(pods: Objects, name: str) -> Any:
    found = pods.get(name, {})
    if found.get("spec", {}).get("nodeName"):
        return True
    if not condition(found):
        return False
    nominated = found["status"].get("nominatedNodeName")
    return not nominated or any("deletionTimestamp" in each["metadata"] for each in pods.values())


def _outcome(pods: Objects, name: str) -> Outcome:
    found = pods[name]
    gone = {each for each, body in pods.items() if "deletionTimestamp" in body["metadata"]}
    return Outcome(
        found["spec"].get("nodeName", ""),
        condition(found).get("message", ""),
        found["status"].get("nominatedNodeName", ""),
        frozenset(gone),
    )


async def _clear(bed: Bed) -> None:
    for kind in (
        "pods",
        "replicasets",
        "persistentvolumeclaims",
        "poddisruptionbudgets",
        "nodes",
        "storageclasses",
        "persistentvolumes",
    ):
        resource = builtins.resource(kind)
        where = Selection("default" if resource.namespaced else None)
        page = await bed.api.list(resource, where)
        for item in page.items:
            name = item["metadata"]["name"]
            try:
                if item["metadata"].get("finalizers"):
                    await bed.patch(kind, name, {"metadata": {"finalizers": None}})
                await bed.delete(kind, name)
            except errors.NotFound:
                pass
        await bed.until(kind, lambda found: not found)
