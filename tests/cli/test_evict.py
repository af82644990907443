"""Pods leave when both flags say so, and budgets are heard."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.cluster.assembly import process
from kvestigate.cluster.assembly.directory import ClusterDirectory, clusters_directory, known
from kvestigate.errors import NotFound
from kvestigate.kube import builtins
from kvestigate.nodeops.evict import DrainOptions, Evictions, drain
from tests.cli.conftest import Invoke
from tests.contexts import acting

FLAGS = ("--apply", "--i-understand-this-disrupts-workloads")
FORCE = ("--force", *FLAGS)
"""The pods here are bare: no controller recreates them."""
A_WHILE = ("--timeout", "5s")
"""Long enough for the pods that may go, however busy the machine; one that may not waits it out."""
PATIENCE = 30.0


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a cluster of one simulated node has its state."""
    state = tmp_path_factory.mktemp("state")
    up = [sys.executable, "-m", "kvestigate", "up", "--nodes", "1", "--host", "simulated"]
    environ = os.environ | {"XDG_STATE_HOME": str(state), "HOME": str(state)}
    subprocess.run(up, env=environ, check=True, timeout=60, capture_output=True)
    yield state
    for each in known(clusters_directory({"XDG_STATE_HOME": str(state)})):
        process.stop(each)


@pytest.fixture
def cluster(state: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three pods run on its node: `plain`, `guarded` and one of the system."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    config = ClusterDirectory(clusters_directory({"XDG_STATE_HOME": str(state)}), "default")
    asyncio.run(_load(config.kubeconfig))
    return config.kubeconfig


def pod(name: str, namespace: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "guard", "namespace": "default"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
}


async def _load(config: Path) -> None:
    async with connect(resolve(AccessOptions(kubeconfig=str(config)), {}, None)) as api:
        pods = builtins.resource("pods")
        await _clear(api)
        for body in (pod("plain"), pod("guarded"), pod("core", "kube-system")):
            await api.create(pods, body, namespace=body["metadata"]["namespace"])
        await api.create(builtins.resource("poddisruptionbudgets"), BUDGET, namespace="default")
        async with asyncio.timeout(PATIENCE):
            await _until_running(api, 3)


async def _clear(api: Api) -> None:
    """Take away what the test before left."""
    nodes = builtins.resource("nodes")
    await api.patch(nodes, "node-1", {"spec": {"unschedulable": None}})
    for plural in ("pods", "poddisruptionbudgets"):
        resource = builtins.resource(plural)
        for body in (await api.list(resource)).items:
            meta = body["metadata"]
            with suppress(NotFound):  # it may be on its way already
                await api.delete(
                    resource, meta["name"], namespace=meta["namespace"], grace_seconds=0
                )


async def _until_running(api: Api, wanted: int) -> None:
    resource = builtins.resource("pods")
    page = await api.list(resource)
    running = {it["metadata"]["uid"] for it in page.items if it["status"]["phase"] == "Running"}
    version = page.metadata.resource_version
    if len(running) == wanted:
        return
    async with api.watch(resource, resource_version=version) as events:
        async for event in events:
            if event.object["status"].get("phase") == "Running":
                running.add(event.object["metadata"]["uid"])
            if len(running) == wanted:
                return


def outcomes(out: str) -> dict[str, str]:
    document = json.loads(out)
    skipped = {it["name"]: f"skip: {it['reason']}" for it in document["skipped"]}
    return {it["name"]: it["outcome"] for it in document["pods"]} | skipped


@pytest.mark.usefixtures("cluster")
def test_draining_a_node(invoke: Invoke) -> None:
    for flags, code in (((), 0), (FLAGS, 2)):
        refused = invoke("node", "drain", "node-1", *flags)
        assert refused.code == code
        assert "no controller recreates it: it would be gone for good; add --force" in refused.out
        assert "nothing is evicted while 2 pods would be lost: add --force" in refused.out
    preview = invoke("node", "drain", "node-1", "--force")
    assert preview.code == 0
    assert "would cordon node node-1 and evict 2 pods; budgets hold back 1 of them" in preview.out
    assert "in a system namespace" in preview.out
    said = "wait, then evict   PodDisruptionBudget guard allows none until more than 1 pods are"
    assert f"guarded   {said}" in preview.out
    assert "nothing was changed" in preview.err
    assert len(json.loads(invoke("pods", "-o", "json").out)["pods"]) == 3

    done = invoke("node", "drain", "node-1", *A_WHILE, *FORCE, "-o", "json")
    assert outcomes(done.out) == {
        "plain": "gone",
        "guarded": "blocked",
        "core": "skip: in a system namespace; --include-system evicts it, too",
    }
    assert (done.code, done.err) == (6, "")
    assert "disruption budget" in done.out
    left = json.loads(invoke("pods", "-o", "json").out)["pods"]
    assert {it["name"] for it in left} == {"guarded", "core"}
    assert json.loads(invoke("plan", "--cpu", "1", "-o", "json").out)["nodes"][0]["barred"]


@pytest.mark.usefixtures("cluster")
def test_clearing_and_evicting_leave_the_node_open(invoke: Invoke) -> None:
    assert "would evict 1 pod\n" in invoke("evict", "-l", "app=plain", "--force").out
    for flags in ((), FLAGS):
        unknown = invoke("evict", "-n", "defalt", *flags)
        assert (unknown.code, unknown.out) == (5, "")
        assert "did you mean 'default'?" in unknown.err
        nothing = invoke("evict", "-n", "kube-public", *flags)
        assert (nothing.code, nothing.out) == (0, "no pods to evict\n")
    lost = invoke("evict", "--node", "nde-1")
    assert (lost.code, "did you mean 'node-1'?" in lost.err) == (5, True)
    done = invoke("evict", "-l", "app=plain", "-n", "default", "--grace-period", "1", *FORCE)
    assert done.code == 0, done.out + done.err
    assert "1 of 1 pods evicted" in done.out

    system = ("--include-system", *A_WHILE)
    whole = invoke("node", "clear", "node-1", *system, *FORCE, "-o", "json")
    assert outcomes(whole.out) == {"guarded": "blocked", "core": "gone"}
    assert whole.code == 6
    assert invoke("plan", "--cpu", "1").code == 0


def test_a_budget_that_gives_way_lets_the_drain_go_on(invoke: Invoke, cluster: Path) -> None:
    access = resolve(AccessOptions(kubeconfig=str(cluster)), {}, None)

    async def drained() -> Evictions:
        blocked = asyncio.Event()
        budgets = builtins.resource("poddisruptionbudgets")

        async def give_way() -> None:
            await blocked.wait()
            async with connect(access) as api:
                await api.delete(budgets, "guard", namespace="default")

        def progress(name: str, left: int) -> None:
            blocked.set()  # the other pod is on its way: this one was asked for and held back

        giving = asyncio.create_task(give_way())
        wanted = DrainOptions(node="node-1", force=True, timeout=PATIENCE, grace_seconds=1)
        found = await drain(replace(acting(access), progress=progress), wanted)
        await giving
        return found

    found = asyncio.run(drained())
    assert {it.name: it.outcome for it in found.pods} == {"plain": "gone", "guarded": "gone"}


@pytest.mark.usefixtures("cluster")
def test_what_is_meant_must_be_said(invoke: Invoke) -> None:
    nothing = invoke("evict", *FLAGS)
    assert (nothing.code, "no pods are selected" in nothing.err) == (2, True)
    assert invoke("evict", "--node", "node-9").code == 5
    assert invoke("node", "drain", "node-9", *FLAGS).code == 5
    assert len(json.loads(invoke("pods", "-o", "json").out)["pods"]) == 3


@pytest.mark.usefixtures("cluster")
def test_a_deadline_is_a_failure_of_its_own(invoke: Invoke) -> None:
    late = invoke("evict", "-l", "app=plain", "--timeout", "0", *FORCE)
    assert late.code == 7, late.out
    assert "0 of 1 pods evicted" in late.out
