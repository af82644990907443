"""A server of planes in memory, with workers, and a client for each plane."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kvestigate.aio.clock import WALL, Clock
from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.request_info import root_path
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.interface import Backend
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy.timing import Timing
from kvestigate.cluster.workforce.direct import DirectTransport
from kvestigate.cluster.workforce.plane_workers import WorkerOptions
from kvestigate.cluster.workforce.registry import WorkerRegistry
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from tests.static_tokens import StaticTokens

DEPLOYMENTS = builtins.resource("deployments")
JOBS = builtins.resource("jobs")
PODS = builtins.resource("pods")
NODES = builtins.resource("nodes")


@dataclass(frozen=True, slots=True)
class World:
    """A server, its store and its workers."""

    api: ApiServer
    store: Store
    workers: WorkerRegistry

    async def virtual(self, name: str, seed: int = 7) -> tuple[Plane, Api]:
        """A new plane on a virtual clock."""
        return await self.api.planes.create(name, Timing(seed)), self.client(name)

    async def on_the_wall(self, name: str) -> tuple[Plane, Api]:
        return await self.api.planes.create(name), self.client(name)

    def client(self, plane: str, user: str = "admin") -> Api:
        headers = [("authorization", f"Bearer {user}"), ("user-agent", user)]
        base = root_path(plane)
        return Api(InProcessTransport(self.api.handle, base_path=base, headers=headers))


@asynccontextmanager
async def world(
    backend: Backend,
    *,
    nodes: int = 2,
    clock: Clock = WALL,
    on_wall_clock: bool = True,
    audit: AuditLog | None = None,
) -> AsyncIterator[World]:
    users = {digest("admin"): User("admin", (MASTERS, AUTHENTICATED))}
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(Store(backend))
        api = ApiServer(store, StaticTokens(users), Rbac(), clock=clock, audit=audit)
        workers = await stack.enter_async_context(
            WorkerRegistry(
                api.planes,
                partial(DirectTransport, api),
                WorkerOptions(nodes=nodes),
                clock=clock,
                on_wall_clock=on_wall_clock,
            )
        )
        yield World(api, store, workers)


@pytest.fixture
async def planes() -> AsyncIterator[World]:
    async with world(MemoryBackend()) as made:
        yield made


@pytest.fixture(params=["memory", "sqlite"])
async def stored(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """The same on every backend that workers work with."""
    memory = request.param == "memory"
    async with world(MemoryBackend() if memory else SqliteBackend(tmp_path / "db")) as made:
        yield made


def fingerprint(plane: Plane) -> str:
    """Of every object of a plane, byte by byte."""
    digest = hashlib.sha256()
    for key, item in plane.state:
        digest.update(repr((key, item.namespace, item.name)).encode() + item.data)
    return digest.hexdigest()


def pod_template(*command: str, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    container = {"name": "main", "image": "example.com/app", "command": list(command)}
    return {"metadata": {"labels": labels or {}}, "spec": {"containers": [container], **spec}}


def deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": pod_template("serve", labels=labels),
        },
    }


def job(name: str, *command: str, completions: int = 1) -> dict[str, Any]:
    template = pod_template(*command, restartPolicy="Never")
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"completions": completions, "parallelism": 2, "template": template},
    }


async def names(api: Api, resource: Resource, **status: str) -> list[str]:
    """Of the objects whose status says this."""
    found = await api.list(resource)
    return sorted(
        one["metadata"]["name"]
        for one in found.items
        if all(one.get("status", {}).get(field) == value for field, value in status.items())
    )
