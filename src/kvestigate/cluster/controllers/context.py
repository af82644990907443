"""What one controller works with: caches, a queue of its own, and writes that its caches see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

import msgspec

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.aio.workqueue import WorkQueue
from kvestigate.client.api import Api, PatchType, Propagation
from kvestigate.client.cache import Cache, Change, Key, Named, V
from kvestigate.client.recorder import NORMAL, News, Recorder, Reference
from kvestigate.cluster.controllers.inventory import Inventory
from kvestigate.cluster.controllers.kinds import Kind
from kvestigate.cluster.controllers.times import stamp
from kvestigate.kube.patches import merge

T = TypeVar("T")

RECURRING = frozenset({"node-lifecycle-controller"})
"""Controllers whose timers only recur: a plane is idle though they will look at leases again."""

_EVENT_SOURCES = {
    "horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler",
    "node-lifecycle-controller": "node-controller",
    "ephemeral-volume-controller": "ephemeral_volume",
    "persistentvolume-binder-controller": "persistentvolume-controller",
    "persistentvolumeclaim-binder-controller": "persistentvolume-controller",
    "resourceclaim-controller": "resource_claim",
    "replicationcontroller-controller": "replication-controller",
}
"""The source in the events of kube-controller-manager, where it is not the controller's name."""

Keys = Callable[[Change[V]], Iterable[Key]]
"""The keys that have to be reconciled after a change."""


Identify = Callable[[str], Api]
"""Connects to the API as the controller of a name."""


class Sources(Protocol):
    """Where caches and connections come from: the manager."""

    clock: Clock
    inventory: Inventory
    identify: Identify
    recorder: Recorder

    def cache(self, kind: Kind[V]) -> Cache[V]: ...

    def add_worker(self, context: Context) -> None: ...


class Controller(Protocol):
    """Brings one object at a time to its wanted state."""

    async def reconcile(self, key: Key) -> float | None:
        """Bring the object to its wanted state; seconds until it must be reconciled again."""


class Context:
    """What a controller reads, queues and writes through."""

    def __init__(self, name: str, sources: Sources) -> None:
        self.name = name
        """`deployment-controller`: as events and field managers know it."""
        self.queue: WorkQueue[Key] = WorkQueue(
            clock=sources.clock.routine() if name in RECURRING else sources.clock,
            offered=lambda: sources.add_worker(self),
        )
        self._sources = sources

    @cached_property
    def api(self) -> Api:
        """The API as this controller: made with its first request, which may never come."""
        return self._sources.identify(self.name)

    def now(self) -> float:
        return self._sources.clock.now()

    def cache(self, kind: Kind[V]) -> Cache[V]:
        return self._sources.cache(kind)

    def inventory(self) -> Inventory:
        """Every object of every resource that can be deleted, by its metadata."""
        self._sources.inventory.wanted = True
        return self._sources.inventory

    def watch(self, kind: Kind[V], keys: Keys[V]) -> Cache[V]:
        """Queue `keys` whenever an object of this kind changes."""

        def note(change: Change[V]) -> None:
            for key in keys(change):
                self.queue.add(key)

        cache = self.cache(kind)
        cache.subscribe(note)
        return cache

    # -- writing ---------------------------------------------------------------------------

    async def create(self, kind: Kind[V], body: dict[str, Any]) -> V:
        view = await self.api.create(kind.resource, body, field_manager=self.name, type=kind.view)
        self.cache(kind).assume(view)
        return view

    async def patch(
        self,
        kind: Kind[V],
        view: Named,
        patch: dict[str, Any],
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> V:
        changed = await self.api.patch(
            kind.resource,
            view.metadata.name,
            patch,
            type,
            namespace=view.metadata.namespace or None,
            subresource=subresource,
            field_manager=self.name,
            type=kind.view,
        )
        self.cache(kind).assume(changed)
        return changed

    async def put_status(
        self,
        kind: Kind[V],
        view: V,
        status: msgspec.Struct,
        *,
        only_this_version: bool = False,
    ) -> bool:
        """Write what differs from the status in `view`; whether anything did."""
        before = getattr(view, "status")  # noqa: B009 - a bound protocol does not name it
        if before == status:
            return False
        change = merge.diff(msgspec.to_builtins(before), msgspec.to_builtins(status))
        if not change:
            return False
        patch: dict[str, Any] = {"status": change}
        if only_this_version:
            patch["metadata"] = {"resourceVersion": view.metadata.resource_version}
        await self.patch(kind, view, patch, subresource="status")
        return True

    async def delete(
        self,
        kind: Kind[V],
        view: V,
        *,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> bool:
        """Delete exactly this object; False if it was gone already."""
        metadata = view.metadata
        try:
            await self.api.delete(
                kind.resource,
                metadata.name,
                namespace=metadata.namespace or None,
                uid=metadata.uid,
                propagation=propagation,
                grace_seconds=grace_seconds,
                type=bytes,
            )
        except (errors.NotFound, errors.Conflict):  # a conflict: the name has a new owner
            gone = True
        else:
            gone = False
        self.cache(kind).assume_doomed(view, stamp(self.now()))
        return not gone

    def tell(
        self,
        kind: Kind[V],
        view: V,
        reason: str,
        message: str,
        type: str = NORMAL,
    ) -> None:
        """Record an event about an object."""
        teller = _EVENT_SOURCES.get(self.name, self.name)
        news = News(_reference(kind, view), teller, type, reason, message)
        self._sources.recorder.tell(news)


def _reference(kind: Kind[Any], view: Named) -> Reference:
    metadata = view.metadata
    fields = {
        "kind": kind.resource.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "apiVersion": kind.resource.api_version,
        "resourceVersion": metadata.resource_version,
    }
    return tuple((key, value) for key, value in fields.items() if value)


async def slow_start(work: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Do similar actions in batches that double: if all of them fail, only a few are tried.

    Returns the results; the first failure is raised when its batch has ended.
    """
    done: list[T] = []
    size = 1
    while len(done) < len(work):
        batch = work[len(done) : len(done) + size]
        done += [await batch[0]()] if len(batch) == 1 else await _together(batch)
        size *= 2
    return done


async def _together(work: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    done: list[T] = []
    for result in await asyncio.gather(*(action() for action in work), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
