"""A plane in process, the controllers under test on it, and a kubelet of few words."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.aio.clock import Clock, WallClock
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.controllers.registry import CONTROLLERS
from kvestigate.controllers.runtime import Manager
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.plane.authn.tokens import StaticTokens, digest
from kvestigate.plane.authn.user import AUTHENTICATED, MASTERS, User
from kvestigate.plane.authz.interface import AllowAll
from kvestigate.plane.server import ApiServer
from kvestigate.plane.store.memory import MemoryBackend
from kvestigate.plane.store.store import Store
from tests.real.session import connected
from tests.upstream.cluster import UpstreamCluster

Object = dict[str, Any]
Objects = Mapping[str, Object]

PATIENCE = 30.0
PODS = builtins.resource("pods")
NAMESPACE = "default"

READY = {
    "phase": "Running",
    "podIP": "10.1.0.1",
    "podIPs": [{"ip": "10.1.0.1"}],
    "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ],
}


def runs(pod: Object) -> Object | None:
    """The usual fate of a pod: it runs and is ready."""
    return READY


@dataclass
class Bed:
    """One API server with controllers on it."""

    api: Api
    namespace: str = NAMESPACE
    fate: Callable[[Object], Object | None] = runs
    """What becomes of a pod without a phase: its status, or None to leave it alone."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def create(self, kind: str, body: Object) -> Object:
        resource = builtins.resource(kind)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        namespace = body["metadata"].get("namespace") or self.namespace
        return await self.api.create(resource, body, namespace=namespace)

    async def get(self, kind: str, name: str) -> Object:
        return await self.api.get(builtins.resource(kind), name, namespace=self.namespace)

    async def patch(self, kind: str, name: str, patch: Object, subresource: str = "") -> Object:
        return await self.api.patch(
            builtins.resource(kind), name, patch, namespace=self.namespace, subresource=subresource
        )

    async def all(self, kind: str, namespace: str | None = None) -> dict[str, Object]:
        resource = builtins.resource(kind)
        where = (namespace or self.namespace) if resource.namespaced else None
        page = await self.api.list(resource, Selection(where))
        return {item["metadata"]["name"]: item for item in page.items}

    async def until(
        self,
        kind: str,
        holds: Callable[[Objects], Any],
        *,
        namespace: str | None = None,
        timeout: float = PATIENCE,
    ) -> dict[str, Object]:
        """The objects by name, as soon as `holds` is true of them."""
        resource = builtins.resource(kind)
        where = (namespace or self.namespace) if resource.namespaced else None
        seen: dict[str, Object] = {}
        try:
            async with asyncio.timeout(timeout):
                return await self._until(resource, Selection(where), holds, seen)
        except TimeoutError:
            raise AssertionError(f"never came true; last seen: {_brief(seen)}") from None

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

    async def kubelet(self) -> None:
        """Gives every pod its fate, and lets those go that are asked to."""
        async with self.api.watch(PODS, Selection(self.namespace)) as events:
            async for event in events:
                if event.type != "DELETED":
                    await self._attend(event.object)

    async def _attend(self, pod: Object) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            if pod["metadata"].get("deletionTimestamp"):
                if pod["metadata"].get("deletionGracePeriodSeconds"):
                    await self.api.delete(PODS, name, namespace=namespace, grace_seconds=0)
            elif pod.get("status", {}).get("phase", "Pending") in ("", "Pending"):
                status = self.fate(pod)
                if status is not None:
                    patch = {"status": status}
                    await self.api.patch(
                        PODS, name, patch, namespace=namespace, subresource="status"
                    )
        except errors.NotFound:
            pass


def _brief(seen: Objects) -> dict[str, Any]:
    return {
        name: {"spec.replicas": item.get("spec", {}).get("replicas"), **item.get("status", {})}
        for name, item in seen.items()
    }


@asynccontextmanager
async def plane(clock: Clock | None = None) -> AsyncIterator[Api]:
    """A fresh plane."""
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest("t"): User("admin", (MASTERS, AUTHENTICATED))})
        server = ApiServer(store, tokens, AllowAll(), clock=clock, random=Random(1))
        yield Api(InProcessTransport(server.handle, headers=[("authorization", "Bearer t")]))


@asynccontextmanager
async def running(bed: Bed, *names: str, clock: Clock | None = None) -> AsyncIterator[Bed]:
    """The named controllers, or all, at work on a bed, and its kubelet."""
    chosen = {name: CONTROLLERS[name] for name in names or CONTROLLERS}
    async with Manager(bed.api, chosen, clock=clock or WallClock()), asyncio.TaskGroup() as tasks:
        kubelet = tasks.create_task(bed.kubelet())
        try:
            yield bed
        finally:
            kubelet.cancel()


@pytest.fixture
async def embedded() -> AsyncIterator[Bed]:
    """A plane of its own, without controllers: for tests that need the whole cluster."""
    async with plane() as api:
        yield Bed(api)


@pytest.fixture(params=["plane", pytest.param("kubernetes", marks=pytest.mark.real)])
async def bed(request: pytest.FixtureRequest) -> AsyncIterator[Bed]:
    """A namespace without controllers, on a plane and on the real server: see `running`."""
    if request.param == "plane":
        async with plane() as api:
            yield Bed(api)
        return
    kubernetes: UpstreamCluster = request.getfixturevalue("kubernetes")
    name = f"test-{uuid.uuid4().hex[:10]}"
    async with connected(kubernetes.admin_kubeconfig()) as api:
        await api.create(builtins.resource("namespaces"), {"metadata": {"name": name}})
        account = {"metadata": {"name": "default", "namespace": name}}
        await api.create(builtins.resource("serviceaccounts"), account)
        api.namespace = name
        yield Bed(api, name)
