"""Scenarios that everybody can start: their totals add up, and every planted fault is found.

What a scenario comes to is captured from a cluster that really runs it. The same objects are then
given to other servers, real Kubernetes among them, and must be found to be the same there.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.cluster.assembly.directory import ClusterDirectory
from kvestigate.cluster.assembly.population import shape_of
from kvestigate.cluster.scenarios.library import checked, find
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from tests.cluster.assembly.conftest import LONG, Object
from tests.cluster.assembly.conftest import cluster as running_cluster
from tests.conftest import Cluster
from tests.upstream.judge import Judge

# Each scenario is started once, with hundreds of pods, and copied object by object: this has taken
# above a minute on a machine that had much else to do.
pytestmark = [pytest.mark.workflow, pytest.mark.timeout(240)]

COPIED = (
    "nodes", "services", "endpointslices", "persistentvolumeclaims", "deployments", "statefulsets",
    "jobs", "pods",
)  # fmt: skip
UNITS = {"": 1, "m": 1 / 1000, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
GPU = "nvidia.com/gpu"

FAULTS = {
    "gpu-fleet": {
        ("crash-loop", "gpu-exporter"),
        ("pending", "pretrain"),
        ("service-without-endpoints", "gateway"),
        ("gpu-idle", "model-multi-1-otel-llm"),
        ("gpu-idle", "model-multi-2-otel-llm"),
        ("gpu-idle", "model-multi-3-otel-llm"),
        ("gpu-idle", "model-multi-4-otel-llm"),
        ("gpu-idle", "sweep-2"),
        ("gpu-held-by-nobody", "node-02"),
    },
    "broken-app": {
        ("service-without-endpoints", "frontend"),
        ("crash-loop", "orders"),
        ("image-pull", "cart"),
        ("pending", "recommender"),
        ("service-without-endpoints", "payments"),
        ("missing-reference", "shop-setings"),
        ("claim-unbound", "search-index"),
        ("pending", "analytics"),
        ("job-failed", "migrate"),
    },
}
"""What must be found, and nothing else that is critical or a warning."""
BY_FIGURES = {"gpu-idle", "gpu-held-by-nobody"}
"""Rules that ask the GPUs themselves: a copy of the objects has none to ask."""

BY_EVENTS = {("service-without-endpoints", "payments")}
"""What an Event says at once; without it a pod may still be on its way."""


@dataclass(frozen=True, slots=True)
class Captured:
    objects: dict[str, list[Object]]
    audit: Any
    """As `--json` writes it."""


def waiting_for(pod: Object) -> str:
    (status,) = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return str(status.get("state", {}).get("waiting", {}).get("reason", ""))


def unscheduled(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(it["type"] == "PodScheduled" and it["status"] == "False" for it in conditions)


def phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def ready_endpoints(slices: list[Object]) -> int:
    endpoints = [each for one in slices for each in one.get("endpoints") or []]
    return sum(it["conditions"].get("ready", True) for it in endpoints)


Settled = tuple[tuple[str, Callable[[list[Object]], bool]], ...]

SETTLED: dict[str, Settled] = {
    "gpu-fleet": (
        # 48 of the fleet, and on each of 8 nodes a GPU exporter and a way to the host: with fewer
        # exporters the audit would not see all GPUs.
        ("pods", lambda pods: sum(phase(it) == "Running" for it in pods
                                  if it["metadata"]["namespace"] != "monitoring") == 64),
        ("pods", lambda pods: any(map(unscheduled, pods))),
        ("pods", lambda pods: any(waiting_for(it) == "CrashLoopBackOff" for it in pods)),
        ("endpointslices", lambda slices: ready_endpoints(slices) >= 44),
    ),
    "broken-app": (
        ("pods", lambda pods: sum(map(unscheduled, pods)) == 3),
        ("pods", lambda pods: {"CrashLoopBackOff", "ImagePullBackOff",
                               "CreateContainerConfigError"} <= {*map(waiting_for, pods)}),
        ("pods", lambda pods: sum(phase(it) == "Failed" for it in pods) == 1),
        ("jobs", lambda jobs: any(it["type"] == "Failed" for job in jobs
                                  for it in job["status"].get("conditions") or [])),
        ("endpointslices", lambda slices: any(it["metadata"]["name"].startswith("payments")
                                              and it.get("endpoints") for it in slices)),
    ),
}  # fmt: skip


async def until(api: Api, plural: str, enough: Callable[[list[Object]], bool]) -> None:
    known: dict[str, Object] = {}
    async with asyncio.timeout(LONG), api.watch(builtins.resource(plural), type=Object) as events:
        async for event in events:
            known[event.object["metadata"]["uid"]] = event.object
            if event.type == "DELETED":
                del known[event.object["metadata"]["uid"]]
            if enough(list(known.values())):
                return


async def capture(name: str, directory: Path) -> Captured:
    source = find(name)
    place = ClusterDirectory(directory, "test")
    place.path.mkdir(parents=True)
    place.scenario.write_text(source.text)
    async with running_cluster(directory, shape_of(checked(source))) as api:
        for plural, enough in SETTLED[name]:
            await until(api, plural, enough)
        audit = await audit_of(place.kubeconfig)
        objects = {}
        for plural in COPIED:
            objects[plural] = [*(await api.list(builtins.resource(plural), type=Object)).items]
    return Captured(objects, audit)


async def audit_of(kubeconfig: Path) -> Any:
    words = ("-m", "kvestigate", "--kubeconfig", str(kubeconfig), "audit", "-o", "json")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(kubeconfig.parent)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, env=env, stdout=subprocess.PIPE
    )
    async with asyncio.timeout(LONG):
        output, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(output)


@pytest.fixture(scope="module", params=sorted(FAULTS))
def scenario(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def captured(scenario: str, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    return asyncio.run(capture(scenario, tmp_path_factory.mktemp(scenario)))


def faults(audit: Any, objects: dict[str, list[Object]]) -> set[tuple[str, str]]:
    """Rule and name, with the hashes of pods cut off; of this scenario's own namespaces."""
    own = {"", *(it["metadata"]["namespace"] for it in (*objects["pods"], *objects["services"]))}
    owners = {it["metadata"]["name"] for kind in ("deployments", "jobs") for it in objects[kind]}
    found = set()
    for finding in audit["findings"]:
        name = finding["subject"]["name"]
        if finding["subject"]["namespace"] not in own or finding["severity"] == "info":
            continue
        if finding["subject"]["kind"] == "Pod":
            name = next(it for it in owners if re.fullmatch(rf"{it}(-[a-z0-9]+){{1,2}}", name))
        found.add((finding["rule"], name))
    return found


def amount(written: str) -> float:
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", written).groups()  # type: ignore[union-attr]  # a test's own input
    return float(number) * UNITS[unit]


def totals(objects: dict[str, list[Object]]) -> dict[str, Counter[str]]:
    """By node, counted as plainly as can be: these pods have no init containers."""
    found = {it["metadata"]["name"]: Counter[str]() for it in objects["nodes"]}
    for pod in objects["pods"]:
        spec = pod["spec"]
        assert not spec.get("initContainers")
        if not spec.get("nodeName") or phase(pod) in ("Succeeded", "Failed"):
            continue
        count = found[spec["nodeName"]]
        count["pods"] += 1
        for container in spec["containers"]:
            asked = container.get("resources", {}).get("requests", {})
            count["cpu"] += round(amount(asked.get("cpu", "0")) * 1000)
            count["memory"] += round(amount(asked.get("memory", "0")))
            count["gpus"] += int(asked.get(GPU, "0"))
    return found


def requested(audit: Any) -> dict[str, Counter[str]]:
    names = {"cpu": "cpu_millis", "memory": "memory_bytes", "gpus": "gpus", "pods": "pods"}
    return {
        row["name"]: Counter({short: row[name]["requested"] for short, name in names.items()})
        for row in audit["reports"]["nodes"]["nodes"]
    }


def test_every_fault_is_found_and_nothing_else(scenario: str, captured: Captured) -> None:
    assert captured.audit["gaps"] == []
    assert faults(captured.audit, captured.objects) == FAULTS[scenario]


def test_the_totals_add_up(scenario: str, captured: Captured) -> None:
    assert requested(captured.audit) == totals(captured.objects)
    offered = sum(
        int(it["status"]["allocatable"].get(GPU, "0")) for it in captured.objects["nodes"]
    )
    gpus = captured.audit["reports"]["gpu"]
    held = sum(it["gpus"] for it in totals(captured.objects).values())
    assert (gpus["allocatable"], gpus["requested"]) == (offered, held)
    if scenario == "gpu-fleet":
        assert (offered, held, gpus["waiting"]) == (64, 48, 8)


def test_every_gpu_is_known_by_its_uuid_with_its_figures_and_its_pod(
    scenario: str, captured: Captured
) -> None:
    devices = captured.audit["reports"]["gpu"]["devices"]
    if scenario == "broken-app":
        assert devices == []
        return
    assert len({it["uuid"] for it in devices}) == 64
    held = Counter(it["user"] for it in devices if it["user"])
    assert held == {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}/{container['name']}": 1
        for pod in captured.objects["pods"]
        for container in pod["spec"]["containers"]
        if GPU in container.get("resources", {}).get("requests", {}) and phase(pod) == "Running"
    }
    at_work = [it for it in devices if it["utilization"]]
    assert len(at_work) == captured.audit["reports"]["gpu"]["at_work"] == 9
    assert all(it["user"] for it in at_work)
    ghosts = [it for it in devices if it["memory_used_mib"] > 100 and not it["user"]]
    assert [(it["node"], it["index"]) for it in ghosts] == [("node-02", "2")]


def test_idle_gpus_are_counted_and_not_guessed(scenario: str, captured: Captured) -> None:
    """Which pod has which GPU depends on the order in which pods came to their nodes."""
    found = [it for it in captured.audit["findings"] if it["rule"].startswith("gpu-idle")]
    held = [int(re.findall(r"holds? (\d+) GPU", it["evidence"])[0]) for it in found]
    idle = [
        it
        for it in captured.audit["reports"]["gpu"]["devices"]
        if it["user"] and not it["utilization"]
    ]
    assert sum(held) == len(idle) == {"broken-app": 0, "gpu-fleet": 39}[scenario]
    assert held == sorted(held, reverse=True), "the largest waste comes first"
    assert {it["rule"] for it in found} <= {"gpu-idle"}


def path(resource: Resource, namespace: str = "") -> str:
    root = f"/apis/{resource.group}" if resource.group else "/api"
    where = f"/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}/{resource.version}{where}/{resource.plural}"


def as_new(plural: str, body: Object) -> Object:
    """What can be created again: nothing in it that a server gave."""
    meta, spec = body["metadata"], dict(body.get("spec", {}))
    kept = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
    owners = [{**it, "blockOwnerDeletion": False} for it in meta.get("ownerReferences", [])]
    if plural == "services":
        spec = {key: spec[key] for key in ("selector", "ports", "type") if key in spec}
        if body["spec"].get("clusterIP") == "None":
            spec["clusterIP"] = "None"
    if plural == "jobs":
        spec["manualSelector"] = True
    rest: Object = {key: body[key] for key in ("endpoints", "ports", "addressType") if key in body}
    return {"metadata": {**kept, "ownerReferences": owners}, "spec": spec, **rest}


def copy(judge: Judge, objects: dict[str, list[Object]]) -> None:
    spaces = {it["metadata"].get("namespace") for kind in COPIED for it in objects[kind]} - {None}
    for name in sorted(spaces):
        judge.ensure("/api/v1/namespaces", {"metadata": {"name": name}})
        accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
        judge.ensure(accounts, {"metadata": {"name": "default"}})
    for plural in COPIED:
        resource = builtins.resource(plural)
        for body in objects[plural]:
            meta = body["metadata"]
            where = path(resource, meta.get("namespace", ""))
            made = as_new(plural, body)
            if plural == "endpointslices":
                del made["spec"]
            judge.ensure(where, made)
            if plural in ("nodes", "pods", "jobs", "persistentvolumeclaims"):
                judge.merge(f"{where}/{meta['name']}/status", {"status": body["status"]})


@pytest.fixture
def audited(cluster: Cluster, judge: Judge, captured: Captured) -> Iterator[Any]:
    copy(judge, captured.objects)
    config = cluster.admin_kubeconfig()
    done = subprocess.run(
        [sys.executable, "-m", "kvestigate", "--kubeconfig", str(config), "audit", "-o", "json"],
        capture_output=True, text=True, check=True, timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": str(config.parent)},
    )  # fmt: skip
    yield json.loads(done.stdout)
    for body in captured.objects["nodes"]:
        judge.delete(f"/api/v1/nodes/{body['metadata']['name']}")


def test_elsewhere_the_same_objects_are_the_same(
    scenario: str, captured: Captured, audited: Any
) -> None:
    expected = {it for it in FAULTS[scenario] if it[0] not in BY_FIGURES} - BY_EVENTS
    found = faults(audited, captured.objects)
    assert {it for it in found if it[0] != "pod-on-lost-node"} == expected  # no kubelet is there
    assert requested(audited) == requested(captured.audit)
    here, there = captured.audit["reports"]["gpu"], audited["reports"]["gpu"]
    assert [it["uuid"] for it in there["devices"]] == [it["uuid"] for it in here["devices"]]
    assert (there["allocatable"], there["requested"]) == (here["allocatable"], here["requested"])
