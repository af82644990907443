"""A cache of one resource that keeps itself current: list, then watch.

When the server has forgotten the version that the watch stopped at, the resource is listed again
and the cache tells only what really changed. It holds typed views, never whole objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from kvestigate import errors
from kvestigate.aio.backoff import Backoff
from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.client.cache import Cache, V
from kvestigate.client.call import Call
from kvestigate.client.exchange import Exchange
from kvestigate.client.listing import whole
from kvestigate.client.watching import Watch, transient

_log = logging.getLogger(__name__)


class Informer(Cache[V]):
    """A cache that is current once `start` has returned. Subclasses are where objects come from."""

    waits = True
    """Whether `start` waits for a server, so that many are better started side by side."""

    def __init__(self) -> None:
        super().__init__()
        self._synced: asyncio.Event | None = None

    @property
    def synced(self) -> asyncio.Event:
        """Set once the first complete list is in the cache and was told to the handlers."""
        if self._synced is None:  # an Event is large, and most informers are never asked
            self._synced = asyncio.Event()
        return self._synced

    async def start(
        self, supervisor: Supervisor, name: str, *, patient: bool = False
    ) -> Callable[[], None]:
        """Fill the cache, tell the handlers, keep it current; returns the function that stops it.

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
        version = page.metadata.resource_version
        self.replace(page.items, version)
        return version

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
                self.apply(event.type, event.object)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
