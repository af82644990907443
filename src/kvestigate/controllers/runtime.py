"""Runs controllers: shared caches, a queue and a few workers each, one owner for all of it.

    async with Manager(api, CONTROLLERS) as manager: ...

Entering waits until every cache is filled and every worker waits for work; leaving lets the
work in hand finish. What it costs to be idle is one watch for each resource: tasks are per
controller, never per object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

from kvestigate import errors
from kvestigate.aio.clock import WALL, Clock
from kvestigate.aio.supervisor import Supervisor
from kvestigate.aio.workqueue import QueueClosed
from kvestigate.client.api import Api
from kvestigate.client.call import Call
from kvestigate.client.informer import Change as Heard
from kvestigate.client.informer import Informer, V
from kvestigate.controllers.cache import Cache, Key
from kvestigate.controllers.context import Context, Controller
from kvestigate.controllers.events import Recorder
from kvestigate.controllers.inventory import Inventory
from kvestigate.controllers.kinds import Kind
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import PartialObject

_log = logging.getLogger(__name__)

WORKERS = 4
"""Objects that one controller works on at a time: enough to hide a server's latency."""
_FAREWELL = 5.0
"""Seconds that work in hand has to finish."""

_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Factory = Callable[[Context], Controller]


class Manager:
    """The controllers of one API server."""

    def __init__(
        self,
        api: Api,
        controllers: Mapping[str, Factory],
        *,
        clock: Clock = WALL,
        workers: int = WORKERS,
    ) -> None:
        self.clock = clock
        self.recorder = Recorder(self.api, clock)
        self._api = api
        self._workers = workers
        self.inventory = Inventory(self, api)
        self._caches: dict[tuple[str, str], Cache[Any]] = {}
        self._informers: dict[tuple[str, str], Informer[Any]] = {}
        self._followed: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._running: list[tuple[Context, Controller]] = []
        self._working: list[asyncio.Task[None]] = []
        self._stopping = False
        self._supervisor = Supervisor("controllers")
        self._stack = AsyncExitStack()
        for name, factory in controllers.items():
            context = Context(name, self)
            self._running.append((context, factory(context)))

    # -- what contexts ask for -------------------------------------------------------------

    def api(self, plane: str) -> Api:
        """The way to a plane; with one API server there is just one."""
        return self._api

    def cache(self, kind: Kind[V]) -> Cache[V]:
        """The cache of a resource, made when it is first asked for."""
        place = (kind.resource.group, kind.resource.plural)
        cache = self._caches.get(place)
        if cache is None:
            informer = self._api.informer(kind.resource, type=kind.view)
            cache = self._cached(place, informer)
        return cache

    async def follow(self, resource: Resource) -> Cache[Any]:
        """The cache of any resource while the manager runs, of metadata unless some know more."""
        place = (resource.group, resource.plural)
        cache = self._caches.get(place)
        if cache is not None:
            return cache
        listing = Call("list", resource, accept=_METADATA)
        informer = Informer(self._api.exchange, listing, PartialObject)
        cache = self._cached(place, informer)
        task = self._supervisor.spawn(f"informer of {resource.qualified}", _patient(informer))
        self._followed[place] = task
        synced = asyncio.ensure_future(informer.synced.wait())
        await asyncio.wait({task, synced}, return_when=asyncio.FIRST_COMPLETED)
        synced.cancel()
        return cache

    def unfollow(self, resource: Resource) -> None:
        """The resource is no longer served: forget its objects."""
        place = (resource.group, resource.plural)
        task = self._followed.pop(place, None)
        if task is not None:
            task.cancel()
            cache = self._caches.pop(place)
            self._informers.pop(place)
            for key, view in cache.items():
                cache.learn_gone(key, view)

    def _cached(self, place: tuple[str, str], informer: Informer[V]) -> Cache[V]:
        cache: Cache[V] = Cache()
        self._caches[place] = cache
        self._informers[place] = informer
        informer.subscribe(lambda heard: _learn(cache, heard))
        return cache

    # -- life ------------------------------------------------------------------------------

    async def __aenter__(self) -> Manager:
        await self._stack.enter_async_context(self._supervisor)
        try:
            await self._start()
        except BaseException as error:
            await self._stack.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping = True
        for context, _ in self._running:
            context.queue.close()
        if self._working:
            await asyncio.wait(self._working, timeout=_FAREWELL)
        await self._stack.__aexit__(kind, error, traceback)

    async def _start(self) -> None:
        starting = [
            self._supervisor.start(f"informer of {'.'.join(place)}", informer.run)
            for place, informer in self._informers.items()
        ]
        await asyncio.gather(*starting)
        if self.inventory.wanted:
            await self._supervisor.start("inventory", self.inventory.run)
        self._supervisor.spawn("events", self.recorder.run())
        for context, controller in self._running:
            for number in range(self._workers):
                task = self._supervisor.spawn(
                    f"{context.name}/{number}", self._work(context, controller)
                )
                self._working.append(task)

    async def _work(self, context: Context, controller: Controller) -> None:
        queue = context.queue
        try:
            while not self._stopping:
                async with queue.work() as key:
                    await _attend(context, controller, key)
                # A server in this process answers without a pause: let others have their turn.
                await asyncio.sleep(0)
        except QueueClosed:
            pass


async def _attend(context: Context, controller: Controller, key: Key) -> None:
    queue = context.queue
    try:
        pause = await controller.reconcile(key)
    except (errors.Conflict, errors.AlreadyExists, errors.NotFound) as error:
        # Somebody was faster; the cache will tell of it in a moment.
        _log.debug("%s of %s has to be tried again: %s", context.name, key, error)
        queue.retry(key)
    except errors.KvestigateError as error:
        _log.warning("%s of %s failed, and will be tried again: %s", context.name, key, error)
        queue.retry(key)
    except Exception:  # noqa: BLE001 - one broken object must not stop the others
        _log.exception("%s of %s failed, and will be tried again", context.name, key)
        queue.retry(key)
    else:
        queue.forget(key)
        if pause is not None:
            queue.add_after(key, pause)


async def _patient(informer: Informer[Any]) -> None:
    """A resource that cannot be read is left out; it must not take the others along."""
    try:
        await informer.run()
    except errors.KvestigateError as error:
        _log.warning("a resource cannot be followed: %s", error)


def _learn(cache: Cache[V], heard: Heard[V]) -> None:
    key = Key("", heard.key.namespace, heard.key.name)
    if heard.new is not None:
        cache.learn(key, heard.new)
    elif heard.old is not None:
        cache.learn_gone(key, heard.old)
