"""Removing what nobody can see any more, a plane at a time.

Whatever would make it visible after all (a fork, a checkpoint) writes the plane's record first,
and every removal compares that record: several servers may clean the same plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kvestigate.cluster.plane.store.errors import NoPlane
from kvestigate.cluster.plane.store.etcd import layout
from kvestigate.cluster.plane.store.etcd.client import EtcdClient, Json, prefix_end
from kvestigate.cluster.plane.store.etcd.layout import Keys, Record
from kvestigate.cluster.plane.store.etcd.reader import Reader
from kvestigate.cluster.plane.store.etcd.records import Records
from kvestigate.cluster.plane.store.garbage import Row, View, unseen

_PIECE = 100
"""Keys removed in one transaction."""


class _Source(NamedTuple):
    """A plane to be cleaned, and what says that it is still the same."""

    record: Record
    key: bytes
    written: int
    alive: bool


class Cleaner:
    def __init__(self, client: EtcdClient, keys: Keys, records: Records, reader: Reader) -> None:
        self._client = client
        self._keys = keys
        self._records = records
        self._reader = reader
        self._trimmed: dict[str, bool] = {}
        """Planes with history that is no longer needed; True: clean them in any case."""
        self._dead: set[str] = set()

    def trimmed(self, plane: str) -> None:
        self._trimmed.setdefault(plane, False)

    def loosened(self, plane: str) -> None:
        """A checkpoint that kept old changes is gone."""
        self._trimmed[plane] = True

    def deleted(self, ident: str) -> None:
        self._dead.add(ident)

    @property
    def busy(self) -> bool:
        """Whether there is anything to clean."""
        return bool(self._dead or self._trimmed)

    async def step(self) -> bool:
        """Clean one plane; True: there are more."""
        if self._dead:
            await self._bury(self._dead.pop())
        elif self._trimmed:
            await self._compact(*self._trimmed.popitem())
        return self.busy

    async def _bury(self, ident: str) -> None:
        """A dead plane: all of it if nothing stands on it, else what its forks cannot see."""
        keys, key = self._keys, self._keys.dead(ident)
        answer = await self._client.range(key)
        if not answer.kvs:
            return
        record = layout.decode_record(answer.kvs[0].value)
        parent = record.lineage[-1][0] if record.lineage else None
        ranges = (keys.log(ident), keys.parts(ident))
        done = await self._client.txn(
            [layout.absent(keys.refs(ident), prefix_end(keys.refs(ident)))],
            [
                layout.delete(key),
                layout.delete(keys.want(ident)),
                *(layout.delete(each, prefix_end(each)) for each in ranges),
                *([layout.delete(keys.ref(parent, ident))] if parent else []),
            ],
        )
        if not done.succeeded:
            await self._sweep(_Source(record, key, answer.kvs[0].mod_revision, alive=False))
        elif parent is not None and (name := self._records.name_of(parent)) is not None:
            self.loosened(name)
        elif parent is not None:
            self._dead.add(parent)

    async def _compact(self, plane: str, thoroughly: bool) -> None:
        try:
            record, written = self._records.get(plane)
        except NoPlane:
            return
        if thoroughly or await self._is_worth_it(record):
            await self._sweep(_Source(record, self._keys.plane(plane), written, alive=True))

    async def _is_worth_it(self, record: Record) -> bool:
        """Sweeping reads the whole log: wait until a good part of it may go."""
        prefix = self._keys.log(record.id)
        rows = await self._client.range(prefix, prefix_end(prefix), count_only=True)
        head = await self._client.range(self._keys.head(record.id))
        if not head.kvs:
            return False
        old = rows.count - (int(head.kvs[0].value) - record.compacted)
        return 2 * (record.compacted - record.cleaned) >= old

    async def _sweep(self, source: _Source) -> None:
        record, keys = source.record, self._keys
        view = View(
            record.lineage[-1][1] if record.lineage else 0,
            record.compacted if source.alive else 0,
            await self._pins(record),
            source.alive,
        )
        removals = await self._garbage(record.id, view)
        guard = [layout.unchanged(source.key, source.written)]
        for start in range(0, len(removals), _PIECE):
            done = await self._client.txn(guard, removals[start : start + _PIECE])
            if not done.succeeded:
                return  # something has changed; it is looked at again after the next trim
        if source.alive:
            name = source.key[len(keys.planes) :].decode()
            cleaned = replace(record, cleaned=record.compacted)
            note = layout.put(source.key, layout.encode_record(cleaned))
            done = await self._client.txn(guard, [note])
            if done.succeeded:
                self._records.note(name, cleaned, done.header.revision)

    async def _pins(self, record: Record) -> list[int]:
        """The revisions at which forks and checkpoints look."""
        prefix = self._keys.refs(record.id)
        pins = set(record.checkpoints.values())
        async for page in self._reader.pages(prefix, prefix_end(prefix)):
            pins.update(int(each.value) for each in page)
        return sorted(pins)

    async def _garbage(self, ident: str, view: View) -> list[Json]:
        """What to remove so that only what somebody can see is left."""
        prefix = self._keys.log(ident)
        rows: list[Row] = []
        owners: dict[bytes, tuple[str, Sequence[int]]] = {}
        """Of each key the token and the revisions it holds."""
        async for page in self._reader.pages(prefix, prefix_end(prefix)):
            for each in page:
                changes = await self._reader.entries(ident, each)
                rows += [
                    Row(
                        (entry.group, entry.plural, entry.namespace, entry.name),
                        entry.revision,
                        entry.type,
                        entry.previous,
                        entry.created,
                    )
                    for entry in changes.entries
                ]
                held = [entry.revision for entry in changes.entries]
                owners[each.key] = changes.token if changes.parts else "", held
        rows.sort()
        garbage = set(unseen(rows, view))
        removals: list[Json] = []
        for key, (token, revisions) in owners.items():
            if garbage.issuperset(revisions):
                removals.append(layout.delete(key))
                if token:
                    parts = self._keys.parts(ident, token)
                    removals.append(layout.delete(parts, prefix_end(parts)))
        return removals
