"""What other servers did, from etcd's watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable

from kvestigate.aio.backoff import Backoff
from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.cluster.plane.store.etcd import layout
from kvestigate.cluster.plane.store.etcd.client import EtcdClient, Event, KeyValue, Seen, prefix_end
from kvestigate.cluster.plane.store.etcd.layout import Keys, decode_record
from kvestigate.cluster.plane.store.etcd.reader import Reader
from kvestigate.cluster.plane.store.etcd.records import Records
from kvestigate.cluster.plane.store.interface import Feed

_log = logging.getLogger(__name__)

_PULSE = 10.0
"""Seconds between the writes that every watch sees."""

_SILENCE = 3 * _PULSE
"""A watch that has seen none of them for so long is dead."""

_KEPT = 30
"""Pulses for which etcd keeps old revisions, so that a watch can resume: five minutes."""


class Follower:
    """Watches everything under the prefix, and resumes where it was when that breaks."""

    def __init__(
        self,
        client: EtcdClient,
        keys: Keys,
        records: Records,
        reader: Reader,
        feed: Feed,
        wanted: Callable[[str, bytes], None],
    ) -> None:
        self._client = client
        self._keys = keys
        self._records = records
        self._reader = reader
        self._feed = feed
        self._wanted = wanted
        self._next = 0

    async def survey(self) -> None:
        """Learn which planes there are; what happens from then on is watched."""
        at, planes = await self._reader.planes()
        gone = set(self._records.names()) - {name for name, _, _ in planes}
        for name, record, written in planes:
            self._records.learn(self._feed, name, record, written)
        for name in gone:
            self._records.learn(self._feed, name, None, at)
        self._next = at + 1

    async def follow(self, ready: Callable[[], None]) -> None:
        """Until cancelled; `ready` is called when the watch stands."""
        backoff, lost = Backoff(initial=0.05, cap=2.0), False
        while True:
            try:
                if lost:
                    await self._start_over()
                    lost = False
                await self._watch(ready, backoff)
            except StoreFailed as error:
                _log.warning("%s; watching again from revision %d", error.message, self._next)
            except Exception:  # noqa: BLE001 - without its watch the server would go stale unnoticed
                _log.exception("a message of etcd's watch could not be followed")
                lost = True
            await asyncio.sleep(backoff.next())

    async def pulse(self) -> None:
        """Until cancelled: keep the watches of all servers from falling silent, and etcd small."""
        seen: deque[int] = deque()
        while True:
            await asyncio.sleep(_PULSE)
            with contextlib.suppress(StoreFailed):
                done = await self._client.txn([], [layout.put(self._keys.pulse, b"")])
                seen.append(done.header.revision)
                if len(seen) > _KEPT:
                    oldest = seen[0]
                    seen.clear()
                    await self._client.compact(oldest)

    async def _watch(self, ready: Callable[[], None], backoff: Backoff) -> None:
        root = self._keys.root
        watch = self._client.watch(root, prefix_end(root), self._next, _SILENCE)
        async with contextlib.aclosing(watch):
            async for seen in watch:
                if seen.compact_revision:
                    _log.warning("etcd has compacted revision %d", self._next)
                    await self._start_over()
                    return
                if seen.canceled:
                    raise StoreFailed(f"etcd ended the watch: {seen.cancel_reason}")
                backoff.reset()
                ready()
                await self._take(seen)

    async def _start_over(self) -> None:
        """What happened in between cannot be read any more, only what it led to."""
        await self.survey()
        for name in self._records.names():
            self._feed.missed(name)

    async def _take(self, seen: Seen) -> None:
        if not seen.events:
            return
        logged: dict[str, list[KeyValue]] = {}
        planes, logs = self._keys.planes, self._keys.logs
        for event in seen.events:
            key = event.kv.key
            if key.startswith(planes):
                await self._tell(logged)
                self._take_record(event)
            elif key.startswith(self._keys.wants):
                self._wanted(key[len(self._keys.wants) :].decode(), event.kv.value)
            elif key.startswith(logs) and event.type == "PUT":
                ident, revision = self._keys.logged(key)
                name = self._records.name_of(ident)
                reached = None if name is None else self._feed.reached(name)
                if reached is not None and (revision > reached or key.endswith(b"+")):
                    logged.setdefault(ident, []).append(event.kv)
        await self._tell(logged)
        self._next = seen.events[-1].kv.mod_revision + 1
        self._records.passed(self._next - 1)

    async def _tell(self, logged: dict[str, list[KeyValue]]) -> None:
        for ident, rows in logged.items():
            changes = await self._reader.changes(ident, rows)
            if (name := self._records.name_of(ident)) is not None:
                self._feed.happened(name, changes)
        logged.clear()

    def _take_record(self, event: Event) -> None:
        name = event.kv.key[len(self._keys.planes) :].decode()
        record = None if event.type == "DELETE" else decode_record(event.kv.value)
        self._records.learn(self._feed, name, record, event.kv.mod_revision)
