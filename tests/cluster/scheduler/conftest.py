"""A plane in process, a scheduler on it, and objects as short as a manifest can be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from kvestigate.aio.clock import WALL, Clock
from kvestigate.cluster.scheduler.runtime import Scheduler
from kvestigate.kube import builtins
from tests.bed import Bed as Plain
from tests.bed import Object, plane


class Bed(Plain):
    """One whose objects may come with a status."""

    async def create(self, kind: str, body: Object) -> Object:
        made, status = await super().create(kind, body), body.get("status")
        if kind == "nodes":
            # New nodes are tainted until the node controller, which is not here, finds them ready.
            taints = body["spec"].get("taints")
            made = await self.patch(kind, body["metadata"]["name"], {"spec": {"taints": taints}})
        if status:
            made = await self.patch(kind, body["metadata"]["name"], {"status": status}, "status")
        return made

    async def delete(self, kind: str, name: str) -> None:
        resource = builtins.resource(kind)
        await self.api.delete(resource, name, namespace=self.namespace, grace_seconds=0)

    async def placed(self, *names: str) -> dict[str, str]:
        """The nodes of these pods, as soon as all have one."""
        pods = await self.until(
            "pods",
            lambda pods: all(pods.get(name, {}).get("spec", {}).get("nodeName") for name in names),
        )
        return {name: pods[name]["spec"]["nodeName"] for name in names}

    async def refused(self, name: str) -> Object:
        """The PodScheduled condition of a pod that fits nowhere."""
        pods = await self.until("pods", lambda pods: condition(pods.get(name, {})))
        return condition(pods[name])


def condition(pod: Object) -> Object:
    found = pod.get("status", {}).get("conditions") or ()
    wanted = (item for item in found if item["type"] == "PodScheduled")
    return next((item for item in wanted if item["status"] == "False"), {})


def node(name: str = "n1", labels: Mapping[str, str] | None = None, **spec: Any) -> Object:
    """A node with room for 4 cpu, 8Gi and 110 pods; `allocatable` adds to that."""
    more = spec.pop("allocatable", {})
    room = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110", **more}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"capacity": room, "allocatable": room},
    }


def pod(
    name: str = "p1", *, cpu: str = "", labels: Mapping[str, str] | None = None, **spec: Any
) -> Object:
    requests = {"cpu": cpu} if cpu else {}
    requests |= spec.pop("requests", {})
    container: Object = {"name": "main", "image": "x", "resources": {"requests": requests}}
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    if limits:
        container["resources"]["limits"] = limits
    if "ports" in spec:
        container["ports"] = spec.pop("ports")
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"containers": [container], **spec},
    }


@asynccontextmanager
async def scheduling(bed: Bed, clock: Clock = WALL) -> AsyncIterator[Scheduler]:
    async with Scheduler(bed.api, clock=clock, random=Random(1)) as scheduler:
        yield scheduler


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    """A fresh plane without a scheduler: see `scheduling`."""
    async with plane() as api:
        yield Bed(api)
