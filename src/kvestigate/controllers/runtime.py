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
from kvestigate.client.informer import Change as Heard
from kvestigate.client.informer import Informer, V
from kvestigate.controllers.cache import Cache, Key
from kvestigate.controllers.context import Context, Controller
from kvestigate.controllers.events import Recorder
from kvestigate.controllers.kinds import Kind
from kvestigate.kube.resources import Resource

_log = logging.getLogger(__name__)

WORKERS = 4
"""Objects that one controller works on at a time: enough to hide a server's latency."""
_FAREWELL = 5.0
"""Seconds that work in hand has to finish."""

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
        self._caches: dict[Resource, Cache[Any]] = {}
        self._informers: dict[Resource, Informer[Any]] = {}
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
        cache = self._caches.get(kind.resource)
        if cache is None:
            cache = self._caches[kind.resource] = Cache()
            informer = self._informers[kind.resource] = self._api.informer(
                kind.resource, type=kind.view
            )
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
            self._supervisor.start(f"informer of {resource.qualified}", informer.run)
            for resource, informer in self._informers.items()
        ]
        await asyncio.gather(*starting)
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


def _learn(cache: Cache[V], heard: Heard[V]) -> None:
    key = Key("", heard.key.namespace, heard.key.name)
    if heard.new is not None:
        cache.learn(key, heard.new)
    elif heard.old is not None:
        cache.learn_gone(key, heard.old)
