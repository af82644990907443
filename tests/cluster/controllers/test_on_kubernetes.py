"""Our controllers on the real API server, judged by what kubectl's users would see."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kvestigate.client.api import Propagation
from kvestigate.client.call import Selection
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from tests.bed import Object, Objects
from tests.cluster.controllers.conftest import Bed, running
from tests.cluster.controllers.objects import deployment, job
from tests.real.session import connected
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.judge import Judge
from tests.upstream.processes import wait_until

pytestmark = pytest.mark.timeout(120)
PATIENCE = 60.0
IMAGES = "web:1", "web:2"


@pytest.fixture
async def bed(kubernetes: UpstreamCluster, namespace: str) -> AsyncIterator[Bed]:
    """With every controller at work."""
    async with (
        connected(kubernetes.admin_kubeconfig()) as api,
        running(Bed(api, namespace)) as bed,
    ):
        yield bed


def _rolled_out(name: str = "web", replicas: int = 3, image: str = "web:1") -> Any:
    def holds(found: Objects) -> bool:
        if name not in found:
            return False
        spec, status = found[name]["spec"], found[name].get("status", {})
        counts = [status.get(f"{which}Replicas") for which in ("updated", "ready", "available")]
        return (
            spec["template"]["spec"]["containers"][0]["image"] == image
            and counts == [replicas] * 3
            and status.get("replicas") == replicas
            and status.get("observedGeneration") == found[name]["metadata"]["generation"]
        )

    return holds


def _image(image: str) -> Object:
    container = {"name": "main", "image": image}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


async def _kubectl(kubernetes: UpstreamCluster, namespace: str, *words: str) -> str:
    command = [kubernetes.binaries.path("kubectl"), *words, f"--namespace={namespace}"]
    command.append(f"--kubeconfig={kubernetes.admin_kubeconfig()}")
    done = await asyncio.to_thread(
        subprocess.run, command, check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    return str(done.stdout)


async def test_a_deployment_rolls_out_and_back(bed: Bed, kubernetes: UpstreamCluster) -> None:
    await bed.create("deployments", deployment(image=IMAGES[0]))
    await bed.until("deployments", _rolled_out(), timeout=PATIENCE)
    await bed.patch("deployments", "web", _image(IMAGES[1]))
    await bed.until("deployments", _rolled_out(image=IMAGES[1]), timeout=PATIENCE)
    said = await _kubectl(kubernetes, bed.namespace, "rollout", "status", "deployment/web")
    assert "successfully rolled out" in said
    await _kubectl(kubernetes, bed.namespace, "rollout", "undo", "deployment/web")
    found = await bed.until("deployments", _rolled_out(image=IMAGES[0]), timeout=PATIENCE)
    annotations = found["web"]["metadata"]["annotations"]
    assert annotations["deployment.kubernetes.io/revision"] == "3"
    history = await _kubectl(kubernetes, bed.namespace, "rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]
    sizes = sorted(each["spec"]["replicas"] for each in (await bed.all("replicasets")).values())
    assert sizes == [0, 3]


async def test_a_rolling_update_keeps_its_bounds(bed: Bed) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
    await bed.create("deployments", deployment(replicas=6, strategy=rolling))
    await bed.until("deployments", _rolled_out(replicas=6), timeout=PATIENCE)
    seen: list[int] = []

    def note(found: Objects) -> bool:
        sizes = [each["spec"]["replicas"] for each in found.values()]
        seen.append(sum(sizes))
        ready = [each.get("status", {}).get("availableReplicas", 0) for each in found.values()]
        return sorted(sizes) == sorted(ready) == [0, 6] and len(seen) > 1

    watching = asyncio.create_task(bed.until("replicasets", note, timeout=PATIENCE))
    await bed.patch("deployments", "web", _image(IMAGES[1]))
    await watching
    assert max(seen) == 8
    assert min(seen) >= 5


async def test_a_job_completes(bed: Bed) -> None:
    bed.fate = lambda pod: {"phase": "Succeeded"}
    await bed.create("jobs", job(completions=3, parallelism=2))
    found = await bed.until("jobs", _ended("Complete"), timeout=PATIENCE)
    status = found["work"]["status"]
    assert status["succeeded"] == 3
    assert [each["type"] for each in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    pods = await bed.until("pods", lambda pods: not any(map(_tracked, pods.values())))
    assert len(pods) == 3


async def test_a_job_gives_up(bed: Bed) -> None:
    bed.fate = lambda pod: {"phase": "Failed"}
    await bed.create("jobs", job(backoffLimit=0, completions=2, parallelism=2))
    found = await bed.until("jobs", _ended("Failed"), timeout=PATIENCE)
    status = found["work"]["status"]
    assert [each["type"] for each in status["conditions"]] == ["FailureTarget", "Failed"]
    assert status["conditions"][-1]["reason"] == "BackoffLimitExceeded"
    assert status["failed"] == 2


@pytest.mark.parametrize("policy", [Propagation.BACKGROUND, Propagation.FOREGROUND])
async def test_deletion_cascades(bed: Bed, policy: Propagation) -> None:
    await bed.create("deployments", deployment())
    await bed.until("deployments", _rolled_out(), timeout=PATIENCE)
    await bed.api.delete(
        builtins.resource("deployments"), "web", namespace=bed.namespace, propagation=policy
    )
    for kind in ("deployments", "replicasets", "pods"):
        await bed.until(kind, lambda found: not found, timeout=PATIENCE)


async def test_custom_resources_are_collected(bed: Bed, judge: Judge) -> None:
    widgets = Resource("h-ctrl.example.com", "v1", "widgets", "Widget")
    await bed.create("customresourcedefinitions", _definition(widgets))
    # The server serves it some time after it says that it does.
    path = widgets.path(namespace=bed.namespace)
    await asyncio.to_thread(wait_until, lambda: judge.answers(path), "no widgets are served")
    root = await bed.create("configmaps", {"metadata": {"name": "root"}})
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "root",
        "uid": root["metadata"]["uid"],
    }
    metadata = {"name": "w", "namespace": bed.namespace, "ownerReferences": [owner]}
    body = {"apiVersion": widgets.api_version, "kind": widgets.kind, "metadata": metadata}
    made = await bed.api.create(widgets, body)
    await bed.api.delete(
        builtins.resource("configmaps"),
        "root",
        namespace=bed.namespace,
        propagation=Propagation.BACKGROUND,
    )
    version = made["metadata"]["resourceVersion"]
    where = Selection(bed.namespace)
    async with (
        asyncio.timeout(PATIENCE),
        bed.api.watch(widgets, where, resource_version=version) as events,
    ):
        assert [event.type async for event in _until_deleted(events)] == ["DELETED"]


async def _until_deleted(events: Any) -> AsyncIterator[Any]:
    async for event in events:
        if event.type == "DELETED":
            yield event
            return


def _definition(resource: Resource) -> Object:
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": resource.version, "served": True, "storage": True, "schema": schema}
    names = {"plural": resource.plural, "kind": resource.kind}
    spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": resource.qualified}, "spec": spec}


async def test_a_namespace_is_emptied(bed: Bed) -> None:
    await bed.create("deployments", deployment())
    await bed.until("deployments", _rolled_out(), timeout=PATIENCE)
    await bed.api.delete(builtins.resource("namespaces"), bed.namespace)
    await bed.until("namespaces", lambda found: bed.namespace not in found, timeout=PATIENCE)


def _ended(how: str) -> Any:
    def holds(found: Objects) -> bool:
        status = found["work"].get("status", {}) if "work" in found else {}
        return any(each["type"] == how for each in status.get("conditions", ()))

    return holds


def _tracked(pod: Object) -> bool:
    return "batch.kubernetes.io/job-tracking" in pod["metadata"].get("finalizers", ())
