"""Runs controllers: shared caches, a queue and a few workers each, one owner for all of it.

    async with Manager(api, CONTROLLERS) as manager: ...

Entering waits until every cache is filled; leaving lets the work in hand finish. Workers are
tasks: they start when a queue has a key and end when it is empty. So an idle manager costs one
watch for each resource.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from kvestigate import errors
from kvestigate.aio.clock import WALL, Clock
from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.api import Api
from kvestigate.client.cache import Cache, Key, V
from kvestigate.client.informer import Informer
from kvestigate.client.recorder import Recorder
from kvestigate.cluster.controllers.context import Context, Controller, Identify
from kvestigate.cluster.controllers.inventory import Inventory
from kvestigate.cluster.controllers.kinds import Kind
from kvestigate.cluster.controllers.owners import index_owners
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import PartialObject

_log = logging.getLogger(__name__)

WORKERS = 4
"""Objects that one controller works on at a time: enough to hide a server's latency."""
_GRACE = 5.0
"""Seconds that work in hand has to finish."""

Factory = Callable[[Context], Controller]
Pace = Callable[[int, Callable[[], object]], None]
"""(rank, begin) -> calls `begin` when it is the turn of controllers of that rank."""


class Manager:
    """The controllers of one API server."""

    def __init__(
        self,
        api: Api,
        controllers: Mapping[str, Factory],
        *,
        clock: Clock = WALL,
        workers: int = WORKERS,
        pace: Pace | None = None,
        identify: Identify | None = None,
    ) -> None:
        """`identify` connects as a controller; without it, all controllers act through `api`.

        `pace` decides when workers begin; without it they do at once.

        The rank of a controller is its place among `controllers`.
        """
        self.clock = clock
        self.recorder = Recorder(api, clock)
        self.api = api
        self.identify: Identify = identify or (lambda name: api)
        self._workers = workers
        self.inventory = Inventory(self, api)
        self._informers: dict[tuple[str, str], Informer[Any]] = {}
        self._stops: dict[tuple[str, str], Callable[[], None]] = {}
        """How to stop the informers that `follow` started."""
        self._controllers: dict[str, Controller] = {}
        self._contexts: list[Context] = []
        self._working: set[asyncio.Task[None]] = set()
        self._workers_of: dict[str, int] = {}
        """How many workers each controller has."""
        self._pace = pace
        self._ranks = {name: rank for rank, name in enumerate(controllers)}
        self._turns_asked: set[str] = set()
        """Controllers that wait for `pace` to call them."""
        self._open = False
        """Whether workers may start: not before the caches are filled."""
        self._supervisor = Supervisor("controllers")
        for name, factory in controllers.items():
            context = Context(name, self)
            self._workers_of[name] = 0
            self._contexts.append(context)
            self._controllers[name] = factory(context)

    # -- what contexts ask for -------------------------------------------------------------

    def cache(self, kind: Kind[V]) -> Cache[V]:
        """The cache of a resource, made when it is first asked for."""
        place = (kind.resource.group, kind.resource.plural)
        informer = self._informers.get(place)
        if informer is None:
            informer = self._informers[place] = self.api.informer(kind.resource, type=kind.view)
            index_owners(informer)
        return informer

    async def follow(self, resources: Sequence[Resource]) -> list[Cache[Any]]:
        """The caches of any resources while the manager runs.

        They hold metadata, unless a controller already follows the resource with a fuller view.
        """
        places = {(resource.group, resource.plural): resource for resource in resources}
        new = {
            place: self.api.informer(resource, type=PartialObject, metadata_only=True)
            for place, resource in places.items()
            if place not in self._informers
        }
        for informer in new.values():
            index_owners(informer)
        self._informers.update(new)
        self._stops.update(await self._start_informers(new, patient=True))
        return [self._informers[place] for place in places]

    def unfollow(self, resource: Resource) -> None:
        """The resource is no longer served: forget its objects."""
        place = (resource.group, resource.plural)
        stop = self._stops.pop(place, None)
        if stop is not None:
            stop()
            self._informers.pop(place).clear()

    # -- life ------------------------------------------------------------------------------

    async def __aenter__(self) -> Manager:
        await self._supervisor.__aenter__()
        try:
            await self._start()
        except BaseException as error:
            await self._supervisor.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open = False
        for context in self._contexts:
            context.queue.close()
        if self._working:
            await asyncio.wait(self._working, timeout=_GRACE)
        await self._supervisor.__aexit__(kind, error, traceback)

    async def _start(self) -> None:
        await self._start_informers(self._informers)
        if self.inventory.wanted:
            await self._supervisor.start("inventory", self.inventory.run)
        self._supervisor.spawn("events", self.recorder.run())
        self._open = True
        for context in self._contexts:
            for _ in range(len(context.queue)):
                self.add_worker(context)

    async def _start_informers(
        self, informers: Mapping[tuple[str, str], Informer[Any]], *, patient: bool = False
    ) -> dict[tuple[str, str], Callable[[], None]]:
        """Fill these caches; returns how to stop each."""

        async def start(place: tuple[str, str]) -> Callable[[], None]:
            name = f"informer of {'.'.join(place)}"
            return await informers[place].start(self._supervisor, name, patient=patient)

        if any(informer.waits for informer in informers.values()):
            stops = await asyncio.gather(*map(start, informers))
        else:
            stops = [await start(place) for place in informers]
        return dict(zip(informers, stops, strict=True))

    def add_worker(self, context: Context) -> None:
        """A queue has a key: start one more worker for it, up to the limit."""
        if not self._open:
            return
        if self._pace is None:
            self._start_worker(context)
        elif context.name not in self._turns_asked:
            self._turns_asked.add(context.name)
            self._pace(self._ranks[context.name], lambda: self._begin(context))

    def _begin(self, context: Context) -> None:
        """Start a worker for each waiting key; keys that come later wait for the next turn."""
        self._turns_asked.discard(context.name)
        for _ in range(len(context.queue)):
            self._start_worker(context)

    def _start_worker(self, context: Context) -> None:
        if self._open and self._workers_of[context.name] < self._workers:
            self._workers_of[context.name] += 1
            task = self._supervisor.spawn("worker", self._work(context))
            self._working.add(task)
            task.add_done_callback(self._working.discard)

    async def _work(self, context: Context) -> None:
        queue, controller = context.queue, self._controllers[context.name]
        while self._open and (key := queue.get_now()) is not None:
            try:
                await _reconcile(context, controller, key)
            finally:
                queue.done(key)
            if self._pace is not None:
                break
            # A server in this process answers without a pause: let other tasks run.
            await asyncio.sleep(0)
        self._workers_of[context.name] -= 1
        if len(queue):
            self.add_worker(context)


async def _reconcile(context: Context, controller: Controller, key: Key) -> None:
    queue = context.queue
    try:
        pause = await controller.reconcile(key)
    except (errors.Conflict, errors.AlreadyExists, errors.NotFound) as error:
        # Another client wrote first; the cache will have its change in a moment.
        _log.debug("%s: %s is retried: %s", context.name, key, error)
        queue.retry(key)
    except errors.KvestigateError as error:
        _log.warning("%s: reconciling %s failed and is retried: %s", context.name, key, error)
        queue.retry(key)
    except Exception:  # noqa: BLE001 - one broken object must not stop the others
        _log.exception("%s: reconciling %s failed and is retried", context.name, key)
        queue.retry(key)
    else:
        queue.forget(key)
        if pause is not None:
            queue.add_after(key, pause)
