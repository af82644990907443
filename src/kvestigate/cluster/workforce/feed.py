"""Informers of a plane's workers, filled from the history of the plane instead of from watches.

The workers of one plane would need some ninety watches, each with a task, a stream and a decoder.
In the server's own process the history of the plane is at hand: it is read from where the last
read ended, and every change is decoded once for all informers with the same view. Nothing is
waited for, so what the workers know never depends on timing. Only reading takes this short cut:
what the workers write goes through the API, like everybody's writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from kvestigate import errors
from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.client.api import EVERYTHING, Api
from kvestigate.client.cache import Key, V
from kvestigate.client.call import Selection
from kvestigate.client.discovery import Discovery
from kvestigate.client.informer import Informer
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.request import selection
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import Compacted
from kvestigate.cluster.plane.store.model import Change, ChangeType, Item, ResourceKey
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.workforce.direct import DirectTransport
from kvestigate.kube.decode import decode
from kvestigate.kube.field_selectors import parse_fields
from kvestigate.kube.resources import Registry, Resource
from kvestigate.kube.selectors import parse_labels

_ROUTINE: frozenset[ResourceKey] = frozenset(
    {("coordination.k8s.io", "leases"), ("kvestigate.dev", "clocks")}
)
"""Changes of these are signs of life, not of work."""

_Views = dict[type[Any], Any]


class Feed:
    """Reads the history of a plane for the informers of its workers."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self._revision = plane.state.revision
        self._informers: dict[ResourceKey, list[FedInformer[Any]]] = {}

    def join(self, informer: FedInformer[Any], key: ResourceKey) -> None:
        """Tell `informer` of what there is, and from now on of all that changes."""
        self.catch_up()
        informer.fill(self.plane.state.collection(key).items())
        others = self._informers.setdefault(key, [])
        informer.settles = all(other.view is not informer.view for other in others)
        others.append(informer)

    def leave(self, informer: FedInformer[Any], key: ResourceKey) -> None:
        self._informers[key].remove(informer)

    def catch_up(self) -> bool:
        """Tell of all that changed since the last time; whether any of it was work."""
        if self.plane.state.revision == self._revision:
            return False
        try:
            changes = self.plane.events_since(self._revision)
        except Compacted:
            self._start_over()
            return True
        self._revision = self.plane.state.revision
        for change in changes:
            views: _Views = {}
            for informer in tuple(self._informers.get(change.resource, ())):
                informer.hear(change, views)
        return any(change.resource not in _ROUTINE for change in changes)

    def _start_over(self) -> None:
        state = self.plane.state
        self._revision = state.revision
        for key, informers in self._informers.items():
            for informer in informers:
                informer.fill(state.collection(key).items())


class FedInformer(Informer[V]):
    """The objects of one resource, as a feed tells of them."""

    waits = False

    def __init__(
        self, feed: Feed, resource: Resource, chosen: Selection, type: type[V], *, whole: bool
    ) -> None:
        super().__init__()
        self._feed = feed
        self._resource = resource
        self._chosen = chosen
        self.view = type
        self.settles = True
        """Whether this informer is the one that lets the views share their parts."""
        self._whole = whole
        """Whether more than metadata is looked at, which is the same in every version."""
        self._selection: selection.Selection | None = None
        self._convert: Kind | None = None

    async def start(
        self, supervisor: Supervisor, name: str, *, patient: bool = False
    ) -> Callable[[], None]:
        kind = types.of(self._feed.plane.state).get(
            self._resource.group, self._resource.version, self._resource.plural
        )
        if kind is None:
            if patient:
                return lambda: None
            raise errors.NotFound(f"the plane has no {self._resource.qualified}")
        self._convert = kind if self._whole and not kind.shown_as_stored else None
        chosen = selection.Selection(
            kind.stored,
            self._chosen.namespace or "",
            parse_labels(self._chosen.labels),
            parse_fields(self._chosen.fields),
        )
        if chosen.namespace or not chosen.everything:
            self._selection = chosen
        self._feed.join(self, kind.stored.key)
        if self._synced is not None:
            self._synced.set()
        return partial(self._feed.leave, self, kind.stored.key)

    async def run(self, ready: Ready[None] | None = None) -> None:
        async with Supervisor("feed") as supervisor:
            await self.start(supervisor, "")
            if ready is not None:
                ready(None)
            await asyncio.get_running_loop().create_future()

    def fill(self, items: Iterable[Item]) -> None:
        kind = self.view
        if self._convert is None:
            views = [_shared(item.data, kind) for item in items if self._selects(item)]
        else:
            views = [decode(self._data(item), kind) for item in items if self._selects(item)]
        self.replace(views, str(self._feed.plane.state.revision))

    def hear(self, change: Change, views: _Views) -> None:
        """`views` keeps what the change was decoded to, for those who see it the same way."""
        item = change.item
        if change.type is ChangeType.DELETED or not self._selects(item):
            if change.previous is not None and self._selects(change.previous):
                self.apply("DELETED", self._view(item, views))
        else:
            self.apply("MODIFIED", self._view(item, views))

    def _settle(self, key: Key) -> None:
        if self.settles:
            super()._settle(key)

    def _selects(self, item: Item) -> bool:
        return self._selection is None or self._selection.has(item)

    def _view(self, item: Item, views: _Views) -> V:
        view: V | None = views.get(self.view)
        if view is None:
            view = views[self.view] = decode(self._data(item), self.view)
        return view

    def _data(self, item: Item) -> bytes:
        if self._convert is None:
            return item.data
        return answer.encode(self._convert.from_stored(objects.read(item)))


@lru_cache(maxsize=1024)
def _shared(data: bytes, type: type[V]) -> V:
    """Planes start with the same objects, and forks with those of their source: decode once."""
    return decode(data, type)


class FedDiscovery(Discovery):
    """What a plane serves, known without asking."""

    def __init__(self, api: Api, feed: Feed) -> None:
        super().__init__(api)
        self._feed = feed

    async def registry(self) -> Registry:
        return _registry(types.of(self._feed.plane.state))


@lru_cache(maxsize=64)
def _registry(known: Types) -> Registry:
    return Registry(kind.resource for kind in known)


class FedApi(Api):
    """The API of a plane in this process: what its informers know comes from a feed."""

    def __init__(self, transport: DirectTransport, feed: Feed) -> None:
        super().__init__(transport)
        self._feed = feed

    def informer(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        type: type[V],
        metadata_only: bool = False,
    ) -> Informer[V]:
        return FedInformer(self._feed, resource, selection, type, whole=not metadata_only)

    def discovery(self) -> Discovery:
        return FedDiscovery(self, self._feed)
