"""How much the Apps that run in pods hold, counted on the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvestigate.app.compile import APP_LABEL, GPU, MANAGER, MANAGER_LABEL, compile_to_k8s
from kvestigate.app.fence import holder_of
from kvestigate.app.spec import AppSpec
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.kube import builtins, quantities

_WORKLOADS = ("deployments", "statefulsets", "jobs")


@dataclass(frozen=True, slots=True)
class HeldInPods:
    """What one App may take at most."""

    namespace: str
    name: str
    """Of the App."""
    holder: str
    pods: int
    gpus: int
    memory: int
    """Bytes."""


async def held_in_pods(api: Api) -> list[HeldInPods]:
    """All Apps in pods. Forbidden, where workloads may not be listed: then none can be counted."""
    selection = Selection(labels=f"{APP_LABEL},{MANAGER_LABEL}={MANAGER}")
    resources = [builtins.resource(kind) for kind in _WORKLOADS]
    pages = await asyncio.gather(*(api.list(resource, selection) for resource in resources))
    return [_held(workload) for page in pages for workload in page.items if not _ended(workload)]


def wanted_in_pods(spec: AppSpec, holder: str) -> HeldInPods:
    """What an App would hold."""
    workload = compile_to_k8s(spec)[-1]
    found = _held(workload)
    return HeldInPods(found.namespace, found.name, holder, found.pods, found.gpus, found.memory)


def _held(workload: Mapping[str, Any]) -> HeldInPods:
    spec, metadata = workload["spec"], workload["metadata"]
    count = int(spec.get("replicas", spec.get("parallelism", 1)))
    containers = spec["template"]["spec"]["containers"]
    limits = [(container.get("resources") or {}).get("limits") or {} for container in containers]
    return HeldInPods(
        metadata["namespace"],
        metadata["labels"][APP_LABEL],
        holder_of(metadata),
        count,
        count * sum(int(limit.get(GPU, 0)) for limit in limits),
        count * sum(quantities.whole(limit.get("memory", 0)) for limit in limits),
    )


def _ended(workload: Mapping[str, Any]) -> bool:
    """Whether it is a Job that takes nothing any more."""
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in conditions
        if workload.get("kind", "Job") == "Job"
    )
