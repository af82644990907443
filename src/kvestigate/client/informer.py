"""A cache of one resource that keeps itself current, shared by all who need it.

List, then watch; when the server has forgotten the version, list again and tell only what
really changed. The cache holds typed views, never whole objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec

from kvestigate import errors
from kvestigate.aio.backoff import Backoff
from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.client.call import Call
from kvestigate.client.exchange import Exchange
from kvestigate.client.listing import whole
from kvestigate.client.watching import ChangeType, Watch, transient
from kvestigate.kube.sharing import Pool
from kvestigate.kube.views.meta import Metadata

_log = logging.getLogger(__name__)

_YOUNG = 1024
"""Objects that are left alone after their last change. Most change a few times when they are new
and then hardly ever: what they have in common with others is worth looking for only then."""


class Named(Protocol):
    """A view that an informer can keep: it knows which object it is of."""

    @property
    def metadata(self) -> Metadata: ...


V = TypeVar("V", bound=Named)


class Key(NamedTuple):
    """Which object: what queues hold and caches are asked for."""

    namespace: str
    """Empty for what is not in a namespace."""
    name: str

    def sibling(self, name: str) -> Key:
        """An object beside this one, in the same namespace."""
        return Key(self.namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(view: Named) -> Key:
    return Key(view.metadata.namespace, view.metadata.name)


class Change(msgspec.Struct, Generic[V], frozen=True):
    """What happened to one object of the cache."""

    type: ChangeType
    key: Key
    old: V | None
    """None when it was added."""
    new: V | None
    """None when it was deleted."""


Handler = Callable[[Change[V]], None]


class Informer(Generic[V]):
    """Current objects by key, once `start` has returned. How it hears of them others decide."""

    waits = True
    """Whether `start` waits for a server, so that many are better started side by side."""

    def __init__(self) -> None:
        self._cache: dict[Key, V] = {}
        self._handlers: list[Handler[V]] = []
        self._synced: asyncio.Event | None = None
        self._settling: OrderedDict[Key, None] | None = None
        self._pool: Pool | None = None

    @property
    def synced(self) -> asyncio.Event:
        """Set once the first complete list is in the cache and was told to the handlers."""
        if self._synced is None:  # an Event is large, and most informers are never asked
            self._synced = asyncio.Event()
        return self._synced

    async def start(
        self, supervisor: Supervisor, name: str, *, patient: bool = False
    ) -> Callable[[], None]:
        """Fill the cache, tell the handlers, keep it current; returns the way to stop.

        A definite no of the server (forbidden, no such type) is raised, unless `patient`: then
        the cache stays empty.
        """
        task = supervisor.spawn(name, self._run_patiently() if patient else self.run())
        synced = asyncio.ensure_future(self.synced.wait())
        either: set[asyncio.Future[Any]] = {task, synced}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            synced.cancel()
        if task.done():
            await task  # raises what the task raised
        return lambda: _cancel(task)

    async def run(self, ready: Ready[None] | None = None) -> None:
        """Keep the cache current until cancelled."""
        raise NotImplementedError

    async def _run_patiently(self) -> None:
        try:
            await self.run()
        except errors.KvestigateError as error:
            _log.warning("a resource cannot be followed: %s", error)

    def __len__(self) -> int:
        return len(self._cache)

    def __iter__(self) -> Iterator[V]:
        return iter(self._cache.values())

    def get(self, key: Key) -> V | None:
        return self._cache.get(key)

    def subscribe(self, handler: Handler[V]) -> Callable[[], None]:
        """Tell `handler` of every change, and first of all that is here; returns the way out.

        Handlers run on the event loop between two events: they note keys, they do no work.
        """
        for key, view in list(self._cache.items()):
            handler(Change("ADDED", key, None, view))
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def _replace(self, views: Iterable[V]) -> None:
        current = {key_of(view): view for view in views}
        for key in [key for key in self._cache if key not in current]:
            self._tell("DELETED", key, self._cache.pop(key), None)
        for view in current.values():
            self._apply("ADDED", view)

    def _apply(self, type: ChangeType, view: V) -> None:
        key = key_of(view)
        old = self._cache.get(key)
        if type == "DELETED":
            # The server's last state is newer than ours: handlers see it as the old one.
            if self._cache.pop(key, None) is not None:
                self._tell("DELETED", key, view, None)
        elif old is None:
            self._keep(key, view)
            self._tell("ADDED", key, None, view)
        elif old.metadata.resource_version != view.metadata.resource_version:
            self._keep(key, view)
            self._tell("MODIFIED", key, old, view)

    def _keep(self, key: Key, view: V) -> None:
        self._cache[key] = view
        if len(self._cache) > _YOUNG:
            self._settle(key)

    def _settle(self, key: Key) -> None:
        """In a large cache, let the object that has not changed for longest share its parts."""
        if self._settling is None or self._pool is None:
            self._settling, self._pool = OrderedDict(), Pool()
        self._settling[key] = None
        self._settling.move_to_end(key)
        if len(self._settling) > _YOUNG:
            settled, _ = self._settling.popitem(last=False)
            view = self._cache.get(settled)
            if view is not None:
                self._pool.share(cast(msgspec.Struct, view))

    def _tell(self, type: ChangeType, key: Key, old: V | None, new: V | None) -> None:
        change = Change(type, key, old, new)
        for handler in list(self._handlers):
            handler(change)


class WatchInformer(Informer[V]):
    """List, then watch, in a task that `start` spawns."""

    def __init__(self, exchange: Exchange, listing: Call, type: type[V]) -> None:
        super().__init__()
        self._exchange = exchange
        self._listing = listing
        self._type = type

    async def run(self, ready: Ready[None] | None = None) -> None:
        """Keep the cache current until cancelled.

        Before the first sync a definite no of the server (forbidden, no such type) is raised;
        afterwards every failure is waited out.
        """
        backoff = Backoff(initial=0.8, cap=30.0, jitter=1.0)
        while True:
            try:
                version = await self._relist()
                self.synced.set()
                if ready is not None:
                    ready(None)
                await self._follow(version, backoff)
            except (errors.ApiError, errors.ConnectionFailed, errors.DeadlineExceeded) as error:
                if not (self.synced.is_set() or transient(error)):
                    raise
            await self._exchange.policy.clock.sleep(backoff.next())

    async def _relist(self) -> str:
        page = await whole(self._exchange, self._listing, self._type)
        self._replace(page.items)
        return page.metadata.resource_version

    async def _follow(self, version: str, backoff: Backoff) -> None:
        call = Call(
            "watch",
            self._listing.resource,
            namespace=self._listing.namespace,
            query=self._listing.query,
            # Lists and single objects go by different names when only metadata is asked for.
            accept=self._listing.accept.replace("MetadataList", "Metadata"),
        )
        async with Watch(self._exchange, call, self._type, resource_version=version) as watch:
            async for event in watch:
                backoff.reset()
                self._apply(event.type, event.object)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
