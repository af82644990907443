"""Who holds what: one object in the cluster's API, changed before anything happens on a host.

Every gateway of a cyberspace reads and writes the same ConfigMap, each time from the version that
it has read: so two of them cannot both give away the last place, and one that was killed has left
written down what it was at.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.cybernet import entries as held
from kvestigate.cybernet import quotas
from kvestigate.cybernet.entries import Entries, Entry, Found, Place, Stage
from kvestigate.cybernet.quotas import Holding, Usage
from kvestigate.cybernet.refusals import QuotaExceeded, Unavailable
from kvestigate.cybernet.spec import Cyberspace
from kvestigate.errors import AlreadyExists, Conflict, Forbidden, KvestigateError, NotFound
from kvestigate.kube import builtins

CONFIG_MAPS = builtins.resource("configmaps")

Discover = Callable[[tuple[str, ...]], Awaitable[Found]]
"""What is in the cluster, and on the hosts of these nodes; on those of all if none are named."""
CountApps = Callable[[], Awaitable[Found]]
"""The Apps in pods alone."""
Decide = Callable[[Entries], dict[Place, Entry]]

_TRIES = 60
_WORKING = 4.0
"""Seconds after which whoever makes or removes something says again that it is at work."""
_ATTENTION = 60.0
"""Seconds for which an agent's attention to a workspace need not be written down again."""


class Book:
    """The ConfigMap that the entries of a cyberspace are written in."""

    def __init__(self, access: Access, namespace: str, cyberspace: str) -> None:
        self._access = access
        self._namespace = namespace
        self._name = f"cyberspace-{cyberspace}"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Page]:
        async with connect(self._access) as api:
            yield Page(api, self._namespace, self._name)


class Page:
    """The object while it is read and written over one connection."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._read: dict[str, Any] | None = None

    async def read(self) -> dict[Place, Entry] | None:
        """None if nothing has been written yet."""
        try:
            found = await self._api.get(CONFIG_MAPS, self._name, namespace=self._namespace)
        except NotFound:
            self._read = None
            return None
        except Forbidden as error:
            raise self._denied(error) from None
        self._read = found
        try:
            text = (found.get("data") or {}).get("entries", "[]")
            entries = msgspec.json.decode(text, type=list[Entry])
        except msgspec.DecodeError as error:
            raise Unavailable(
                f"the ledger (ConfigMap {self._namespace}/{self._name}) cannot be read: {error}",
                "ledger",
                hint="the operator can delete it: it is made anew from what is on the hosts",
            ) from None
        return {entry.place: entry for entry in entries}

    async def write(self, entries: Entries) -> bool:
        """Replace what was read; False if somebody else did meanwhile."""
        data = {"entries": msgspec.json.encode(list(entries.values())).decode()}
        try:
            if self._read is None:
                labels = {"app.kubernetes.io/managed-by": "kvestigate"}
                meta = {"name": self._name, "namespace": self._namespace, "labels": labels}
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
                await self._api.create(CONFIG_MAPS, made, namespace=self._namespace)
            else:
                body = {**self._read, "data": data}
                await self._api.replace(CONFIG_MAPS, self._name, body, namespace=self._namespace)
        except (AlreadyExists, Conflict, NotFound):
            return False
        except Forbidden as error:
            raise self._denied(error) from None
        return True

    def _denied(self, error: KvestigateError) -> Unavailable:
        return Unavailable(
            f"the ledger cannot be kept: {error.message}",
            "ledger",
            hint=f"the operator can let the gateway get, create and update configmaps in the "
            f"namespace {self._namespace}",
        )


class Ledger:
    """Counts what is held, and keeps two requests from taking the same last place."""

    def __init__(
        self, space: Cyberspace, book: Book, discover: Discover, count_apps: CountApps
    ) -> None:
        self._space = space
        self._book = book
        self._discover = discover
        self._count_apps = count_apps
        self._lock = asyncio.Lock()
        self._apps: tuple[Holding, ...] = ()
        self.known: Usage | None = None
        """As it was when it was last counted; None: never yet."""

    async def entry(self, place: Place) -> Entry | None:
        return (await self.entries()).get(place)

    async def entries(self) -> Entries:
        """Everything that is held."""
        async with self._book.opened() as page:
            return (await page.read()) or await self._first()

    @asynccontextmanager
    async def making(self, wanted: Holding) -> AsyncIterator[None]:
        """Keeps a place for `wanted` while it is made, and writes down what came of it.

        QuotaExceeded if there is no place.
        """
        await self._reserve(wanted)
        try:
            async with self._at_work(wanted.place):
                yield
        finally:
            await asyncio.shield(self._settle(wanted.place))

    @asynccontextmanager
    async def removing(self, place: Place) -> AsyncIterator[None]:
        """Counts it until it is gone from its host."""

        def marked(entries: Entries) -> dict[Place, Entry]:
            entry = entries.get(place)
            if entry is None:
                return dict(entries)
            held.check_settled(entry, time.time())
            removing = structs.replace(entry, stage=Stage.REMOVING, renewed=time.time())
            return held.changed(entries, place, removing)

        await self._change(marked)
        try:
            async with self._at_work(place):
                yield
        finally:
            await asyncio.shield(self._settle(place))

    async def borrow(self, place: Place, gpus: tuple[int, ...]) -> None:
        """Count GPUs that a run is about to have; QuotaExceeded if they are too many."""
        apps = await self._counted_apps(needed=False)
        limits = self._space.quotas

        def decide(entries: Entries) -> dict[Place, Entry]:
            return held.borrowing(entries, place, gpus, limits, apps, time.time())

        try:
            await self._change(decide)
        except QuotaExceeded:
            await self.reconcile()  # runs may have ended since
            await self._change(decide)

    async def attend(self, entry: Entry) -> None:
        """Its agent has asked about it."""
        now = time.time()
        if now - entry.renewed < _ATTENTION:
            return

        def renewed(entries: Entries) -> dict[Place, Entry]:
            there = entries.get(entry.place)
            fresh = None if there is None else structs.replace(there, renewed=now)
            return held.changed(entries, entry.place, fresh)

        await self._change(renewed)

    async def reconcile(self) -> tuple[Entries, tuple[str, ...], Found]:
        """Bring what is written down in line with the hosts; what is held, and what was wrong.

        The ledger is read first: what others change meanwhile is theirs to tell, so then all of it
        begins anew.
        """
        async with self._lock, self._book.opened() as page:
            for _ in range(_TRIES):
                entries = await page.read()
                found = await self._discover(self._space.hosts.allow_names or ())
                result = held.reconciled(entries or {}, found, time.time())
                if entries == result.entries or await page.write(result.entries):
                    self._apps = found.apps
                    self._note(result.entries)
                    return result.entries, result.repairs, found
                await _pause()
        raise _contended()

    async def abandoned(self, found: Found) -> list[Entry]:
        """Workspaces whose lease has ended."""
        ttl = self._space.leases.ttl
        if ttl is None:
            return []
        async with self._book.opened() as page:
            return held.abandoned(await page.read() or {}, found, ttl, time.time())

    async def _reserve(self, wanted: Holding) -> None:
        apps = await self._counted_apps(needed=not wanted.node)

        def decide(entries: Entries) -> dict[Place, Entry]:
            return held.reserved(entries, wanted, self._space.quotas, apps, time.time())

        try:
            await self._change(decide)
        except QuotaExceeded:
            if not await self._worth_another_look():
                raise
            await self.reconcile()
            await self._change(decide)

    async def _worth_another_look(self) -> bool:
        """Whether something is counted that may be gone: a run's GPUs, or what nobody is at."""
        async with self._book.opened() as page:
            entries = await page.read() or {}
        now = time.time()
        return any(
            entry.borrowed or (entry.stage is not Stage.HELD and now - entry.renewed > held.STALE)
            for entry in entries.values()
        )

    async def _settle(self, place: Place) -> None:
        """Write down what is on the host now. Where it does not say, what was promised counts."""
        node = place[0]
        if not node:
            await self._change(partial(held.changed, place=place, entry=None))
            return
        found = await self._discover((node,))
        real = next((it for it in found.workspaces if it.place == place), None)
        now = time.time()

        def settle(entries: Entries) -> dict[Place, Entry]:
            entry = entries.get(place)
            if entry is None or node not in found.answered:
                return dict(entries)
            settled = held.as_it_is(entry, real, now)
            if settled is not None:
                settled = structs.replace(settled, renewed=now)
            return held.changed(entries, place, settled)

        await self._change(settle)

    @asynccontextmanager
    async def _at_work(self, place: Place) -> AsyncIterator[None]:
        """Says so as long as the block goes on, for those who find what is half done."""

        async def tell() -> None:
            while True:
                await asyncio.sleep(_WORKING)
                await self._change(told)

        def told(entries: Entries) -> dict[Place, Entry]:
            entry = entries.get(place)
            fresh = None if entry is None else structs.replace(entry, renewed=time.time())
            return held.changed(entries, place, fresh)

        telling = asyncio.ensure_future(tell())
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.wait({telling})

    async def _change(self, decide: Decide) -> dict[Place, Entry]:
        async with self._lock, self._book.opened() as page:
            for _ in range(_TRIES):
                written = await page.read()
                entries = await self._first() if written is None else written
                result = decide(entries)
                if result == written or await page.write(result):
                    self._note(result)
                    return result
                await _pause()
        raise _contended()

    async def _first(self) -> dict[Place, Entry]:
        """What a ledger begins with: whatever is on the hosts."""
        found = await self._discover(self._space.hosts.allow_names or ())
        return held.reconciled({}, found, time.time()).entries

    async def _counted_apps(self, *, needed: bool) -> tuple[Holding, ...]:
        if not self._space.quotas.limits_anything:
            return ()
        found = await self._count_apps()
        if found.uncounted is not None and needed:
            raise Unavailable(
                f"quota usage of Apps in pods is unknown: {found.uncounted.message}",
                "quotas",
                hint="list deployments, statefulsets and jobs in all namespaces with these rights",
            )
        self._apps = found.apps
        return found.apps

    def _note(self, entries: Entries) -> None:
        self.known = quotas.usage([*(it.holding for it in entries.values()), *self._apps])


async def _pause() -> None:
    """Long enough that two who meet do not meet again."""
    await asyncio.sleep(random.uniform(0.002, 0.05))


def _contended() -> Unavailable:
    return Unavailable("the ledger is being changed by many at once", "ledger", hint="try again")
