"""A plane in process, the controllers under test on it, and a kubelet of few words."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from kvestigate import errors
from kvestigate.aio.clock import Clock, WallClock
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.cluster.controllers.context import Identify
from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.controllers.runtime import Manager
from kvestigate.cluster.plane.model.request_info import ROOT
from kvestigate.cluster.workforce.direct import DirectTransport
from kvestigate.cluster.workforce.identities import controller
from kvestigate.kube import builtins
from tests.bed import Bed as Plain
from tests.bed import Object, administrator, server
from tests.real.session import connected
from tests.upstream.cluster import UpstreamCluster

PODS = builtins.resource("pods")

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
class Bed(Plain):
    """One with pods that have a fate."""

    fate: Callable[[Object], Object | None] = runs
    """What becomes of a pod without a phase: its status, or None to leave it alone."""
    identify: Identify | None = None
    """Connects as a controller, with the rights that it has on a plane."""

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


@asynccontextmanager
async def denials() -> AsyncIterator[None]:
    """No controller is denied anything during the block."""
    denied: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: denied.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("kvestigate.cluster.controllers.runtime")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
    assert [line for line in denied if 'User "system:' in line] == []


@asynccontextmanager
async def on_a_plane() -> AsyncIterator[Bed]:
    """A plane whose controllers act as themselves."""
    async with server() as started:

        def identify(name: str) -> Api:
            return Api(DirectTransport(started, ROOT, controller(name)))

        yield Bed(administrator(started), identify=identify)


@asynccontextmanager
async def running(bed: Bed, *names: str, clock: Clock | None = None) -> AsyncIterator[Bed]:
    """The named controllers, or all, at work on a bed, and its kubelet."""
    chosen = {name: CONTROLLERS[name] for name in names or CONTROLLERS}
    manager = Manager(bed.api, chosen, clock=clock or WallClock(), identify=bed.identify)
    async with denials(), manager, asyncio.TaskGroup() as tasks:
        kubelet = tasks.create_task(bed.kubelet())
        try:
            yield bed
        finally:
            kubelet.cancel()


@pytest.fixture
async def embedded() -> AsyncIterator[Bed]:
    """A plane of its own, without controllers: for tests that need the whole cluster."""
    async with on_a_plane() as made:
        yield made


@pytest.fixture(params=["plane", pytest.param("kubernetes", marks=pytest.mark.real)])
async def bed(request: pytest.FixtureRequest) -> AsyncIterator[Bed]:
    """A namespace without controllers, on a plane and on the real server: see `running`."""
    if request.param == "plane":
        async with on_a_plane() as made:
            yield made
        return
    kubernetes: UpstreamCluster = request.getfixturevalue("kubernetes")
    name = f"test-{uuid.uuid4().hex[:10]}"
    async with connected(kubernetes.admin_kubeconfig()) as api:
        await api.create(builtins.resource("namespaces"), {"metadata": {"name": name}})
        account = {"metadata": {"name": "default", "namespace": name}}
        await api.create(builtins.resource("serviceaccounts"), account)
        api.namespace = name
        yield Bed(api, name)
