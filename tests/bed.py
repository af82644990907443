"""One API server to test on: objects by kind and name, and waiting for what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from tests.static_tokens import StaticTokens

Object = dict[str, Any]
Objects = Mapping[str, Object]

PATIENCE = 30.0
NAMESPACE = "default"


@asynccontextmanager
async def server(clock: Clock | None = None) -> AsyncIterator[ApiServer]:
    """A server with nothing on it."""
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest("t"): User("admin", (MASTERS, AUTHENTICATED))})
        yield ApiServer(store, tokens, Rbac(), clock=clock, random=Random(1))


def administrator(server: ApiServer) -> Api:
    return Api(InProcessTransport(server.handle, headers=[("authorization", "Bearer t")]))


@asynccontextmanager
async def plane(clock: Clock | None = None) -> AsyncIterator[Api]:
    """A fresh plane, for its administrator."""
    async with server(clock) as started:
        yield administrator(started)


@dataclass
class Bed:
    """A namespace of one API server."""

    api: Api
    namespace: str = NAMESPACE

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
        page = await self.api.list(builtins.resource(kind), self._selection(kind, namespace))
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
        resource, selection = builtins.resource(kind), self._selection(kind, namespace)
        seen: dict[str, Object] = {}
        try:
            async with asyncio.timeout(timeout):
                return await self._until(resource, selection, holds, seen)
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

    def _selection(self, kind: str, namespace: str | None = None) -> Selection:
        namespaced = builtins.resource(kind).namespaced
        return Selection((namespace or self.namespace) if namespaced else None)


def _brief(seen: Objects) -> dict[str, Any]:
    return {
        name: {"spec.replicas": item.get("spec", {}).get("replicas"), **item.get("status", {})}
        for name, item in seen.items()
    }
