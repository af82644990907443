"""Every object of every resource that can be deleted, custom ones included, by its metadata.

For the garbage collector and the namespace controller, which work on resources of any kind. A
resource that another controller already follows is not watched twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from kvestigate.aio.backoff import Backoff
from kvestigate.aio.clock import Clock
from kvestigate.aio.supervisor import Ready
from kvestigate.client.api import Api
from kvestigate.client.cache import Cache, Change
from kvestigate.client.discovery import Discovery
from kvestigate.cluster.controllers.kinds import DEFINITIONS
from kvestigate.kube.resources import Registry, Resource
from kvestigate.kube.views.meta import PartialObject

_NEEDED = frozenset({"list", "watch", "delete"})
_IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})
"""Events own nothing, expire by themselves, and are the most numerous objects of all."""
_ATTEMPTS = 8

Told = Callable[[Resource, Change[Any]], None]


class Followers(Protocol):
    """What the inventory needs of the manager: the caches."""

    clock: Clock

    async def follow(self, resources: Sequence[Resource]) -> list[Cache[Any]]: ...

    def unfollow(self, resource: Resource) -> None: ...

    def cache(self, kind: Any) -> Cache[Any]: ...


class Inventory:
    """Current as long as its `run` runs; `wanted` by whoever asks for it before."""

    def __init__(self, followers: Followers, api: Api) -> None:
        self.wanted = False
        self._followers = followers
        self._discovery = Discovery(api)
        self._registry = Registry(())
        self._followed: dict[tuple[str, str], tuple[Resource, Cache[Any]]] = {}
        self._handlers: list[Told] = []
        self._changed = asyncio.Event()

    @property
    def resources(self) -> list[Resource]:
        return [resource for resource, _ in self._followed.values()]

    def subscribe(self, handler: Told) -> None:
        """Tell of every change from now on, and of all that is there when `run` starts."""
        self._handlers.append(handler)

    def resource_of(self, api_version: str, kind: str) -> Resource | None:
        """The resource that serves a kind, of any version."""
        exact = self._registry.for_kind(api_version, kind)
        if exact is not None:
            return exact
        group = api_version.rpartition("/")[0]
        for resource in self._registry:
            if resource.group == group and resource.kind == kind:
                return resource
        return None

    def in_namespace(self, namespace: str) -> dict[Resource, list[Any]]:
        """What a namespace holds, by resource; empty ones are left out."""
        return {
            resource: objects
            for resource, cache in self._followed.values()
            if resource.namespaced and (objects := cache.find("namespace", namespace))
        }

    async def run(self, ready: Ready[None]) -> None:
        definitions: Cache[PartialObject]
        (definitions,) = await self._followers.follow([DEFINITIONS.resource])
        definitions.subscribe(lambda _: self._changed.set())
        self._changed.clear()
        await self._refresh()
        ready(None)
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._catch_up(definitions)

    async def _catch_up(self, definitions: Cache[PartialObject]) -> None:
        """Discovery lags behind a definition by a moment; try until it has arrived."""
        backoff = Backoff(initial=0.1, cap=2.0, jitter=0.0)
        for _ in range(_ATTEMPTS):
            await self._refresh()
            wanted = {definition.metadata.name for definition in definitions}
            served = {resource.qualified for resource in self._registry}
            if wanted <= served or self._changed.is_set():
                return
            await self._followers.clock.sleep(backoff.next())

    async def _refresh(self) -> None:
        self._discovery.forget()
        self._registry = await self._discovery.registry()
        served: dict[tuple[str, str], Resource] = {}
        for resource in self._registry:
            place = (resource.group, resource.plural)
            if place not in _IGNORED and set(resource.verbs) >= _NEEDED:
                served.setdefault(place, resource)
        for place in [place for place in self._followed if place not in served]:
            # A group whose server does not answer right now is not gone.
            if not self._discovery.unavailable:
                resource, _ = self._followed.pop(place)
                self._followers.unfollow(resource)
        new = [unknown for place, unknown in served.items() if place not in self._followed]
        caches = await self._followers.follow(new)
        for resource, cache in zip(new, caches, strict=True):
            self._add(resource, cache)

    def _add(self, resource: Resource, cache: Cache[Any]) -> None:
        self._followed[resource.group, resource.plural] = (resource, cache)
        cache.subscribe(partial(self._tell, resource))

    def _tell(self, resource: Resource, change: Change[Any]) -> None:
        for handler in self._handlers:
            handler(resource, change)
