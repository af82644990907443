"""A plane in process, a scheduler on it, and objects as short as a manifest can be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from kvestigate.aio.clock import WALL, Clock
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.plane.authn.tokens import StaticTokens, digest
from kvestigate.plane.authn.user import AUTHENTICATED, MASTERS, User
from kvestigate.plane.authz.interface import AllowAll
from kvestigate.plane.server import ApiServer
from kvestigate.plane.store.memory import MemoryBackend
from kvestigate.plane.store.store import Store
from kvestigate.scheduler.runtime import Scheduler

Object = dict[str, Any]
Objects = Mapping[str, Object]

NAMESPACE = "default"
PATIENCE = 10.0


@dataclass
class Bed:
    """One API server."""

    api: Api
    namespace: str = NAMESPACE

    async def create(self, kind: str, body: Object) -> Object:
        resource = builtins.resource(kind)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        status = body.get("status")
        namespace = body["metadata"].get("namespace") or self.namespace
        made = await self.api.create(resource, body, namespace=namespace)
        if kind == "nodes":
            # New nodes are tainted until the node controller, which is not here, finds them ready.
            taints = body["spec"].get("taints")
            made = await self.patch(kind, body["metadata"]["name"], {"spec": {"taints": taints}})
        if status:
            made = await self.patch(kind, body["metadata"]["name"], {"status": status}, "status")
        return made

    async def patch(self, kind: str, name: str, patch: Object, subresource: str = "") -> Object:
        return await self.api.patch(
            builtins.resource(kind), name, patch, namespace=self.namespace, subresource=subresource
        )

    async def delete(self, kind: str, name: str) -> None:
        resource = builtins.resource(kind)
        await self.api.delete(resource, name, namespace=self.namespace, grace_seconds=0)

    async def until(self, kind: str, holds: Callable[[Objects], Any]) -> dict[str, Object]:
        """The objects by name, as soon as `holds` is true of them."""
        resource = builtins.resource(kind)
        selection = Selection(self.namespace if resource.namespaced else None)
        seen: dict[str, Object] = {}
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._until(resource, selection, holds, seen)
        except TimeoutError:
            raise AssertionError(f"never came true; last seen: {seen}") from None

    async def _until(
        self,
        resource: Resource,
        selection: Selection,
        holds: Callable[[Objects], Any],
        seen: dict[str, Object],
    ) -> dict[str, Object]:
        page = await self.api.list(resource, selection)
        seen.update((item["metadata"]["name"], item) for item in page.items)
        if holds(seen):
            return seen
        version = page.metadata.resource_version
        async with self.api.watch(resource, selection, resource_version=version) as events:
            async for event in events:
                name = event.object["metadata"]["name"]
                seen.pop(name, None)
                if event.type != "DELETED":
                    seen[name] = event.object
                if holds(seen):
                    return seen
        raise AssertionError("the watch ended")

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
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest("t"): User("admin", (MASTERS, AUTHENTICATED))})
        server = ApiServer(store, tokens, AllowAll(), random=Random(1))
        yield Bed(Api(InProcessTransport(server.handle, headers=[("authorization", "Bearer t")])))
