"""Steps into etcd. Each is one transaction that may be sent again without harm."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from secrets import token_hex
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from kvestigate.cluster.plane.store.errors import (
    Compacted,
    NoPlane,
    Overtaken,
    PlaneExists,
    StoreError,
)
from kvestigate.cluster.plane.store.etcd import layout
from kvestigate.cluster.plane.store.etcd.cleaner import Cleaner
from kvestigate.cluster.plane.store.etcd.client import EtcdClient, Json, KeyValue, prefix_end
from kvestigate.cluster.plane.store.etcd.layout import Keys, Record
from kvestigate.cluster.plane.store.etcd.reader import Reader
from kvestigate.cluster.plane.store.etcd.records import Records
from kvestigate.cluster.plane.store.interface import (
    Appended,
    Created,
    Deleted,
    Feed,
    Forked,
    Pinned,
    Refusals,
    Step,
    Trimmed,
    Unpinned,
)
from kvestigate.cluster.plane.store.model import Change, ChangeType, total_bytes
from kvestigate.cluster.plane.store.state import PlaneState

_OPERATIONS = 100
"""Keys in one transaction: etcd takes 128 unless told otherwise."""

_BYTES = 1_000_000
"""In one transaction: etcd takes 1.5 MiB unless told otherwise."""

_FORKS = 40
"""Planes in one transaction: each is three keys."""

_COURTESY = 0.1
"""Seconds at most by which an append waits for another server to go first."""

_PLANES = 32
"""Planes that are written to at the same time."""


class Writer:
    def __init__(
        self, client: EtcdClient, keys: Keys, records: Records, reader: Reader, feed: Feed
    ) -> None:
        self._client = client
        self._keys = keys
        self._records = records
        self._reader = reader
        self._feed = feed
        self.cleaner = Cleaner(client, keys, records, reader)
        self._templates: WeakKeyDictionary[PlaneState, str] = WeakKeyDictionary()
        self._storing = asyncio.Lock()
        self._slots = asyncio.Semaphore(_PLANES)
        self._server = token_hex(6).encode()
        self._tokens = (f"{self._server.decode()}-{n}" for n in count())
        self._courtesy: set[str] = set()
        """Planes that another server wants to write to and could not."""
        self._round_trip = 0.0
        """Seconds that the last append took."""

    async def commit(self, steps: Sequence[Step]) -> Refusals:
        """Planes side by side, the steps of a plane in order."""
        groups: dict[str, list[tuple[int, Step]]] = {}
        for place, step in enumerate(steps):
            subject = step.source if isinstance(step, Forked) else step.plane
            groups.setdefault(subject, []).append((place, step))
        refused = await asyncio.gather(*(self._group(each) for each in groups.values()))
        return {place: error for each in refused for place, error in each.items()}

    async def newer(self, plane: str, revision: int) -> bool:
        """Report what is in a plane's log after a revision; False: nothing."""
        ident = self._records.get(plane)[0].id
        start, end = self._keys.change(ident, revision + 1), prefix_end(self._keys.log(ident))
        head = await self._client.range(self._keys.head(ident))
        if not head.kvs or int(head.kvs[0].value) <= revision:
            return False
        rows = await self._client.range(start, end, limit=_OPERATIONS)
        await self._report(plane, ident, revision, rows.kvs)
        return True

    def wanted(self, ident: str, server: bytes) -> None:
        """A server was overtaken. Let it go first once: else the fastest writes all the time."""
        if server != self._server:
            self._courtesy.add(ident)

    async def _group(self, steps: Sequence[tuple[int, Step]]) -> dict[int, StoreError]:
        refused: dict[int, StoreError] = {}
        lost: StoreError | None = None
        async with self._slots:
            for places, step in _merged(steps):
                appends = isinstance(step, Appended)
                try:
                    if appends and lost is not None:
                        raise lost  # it was decided on top of what did not happen
                    await self._enter(step)
                except StoreError as error:
                    refused.update(dict.fromkeys(places, error))
                    lost = error if appends else lost
        return refused

    async def _enter(self, step: Step) -> None:
        match step:
            case Appended(plane, changes):
                await self._append(plane, changes)
            case Created(plane, template):
                await self._create(plane, template)
            case Forked(source, revision, planes):
                await self._fork(source, revision, planes)
            case Deleted(plane):
                await self._delete(plane)
            case Pinned(plane, checkpoint, revision):
                await self._update(plane, lambda record: _pin(record, checkpoint, revision))
            case Unpinned(plane, checkpoint):
                await self._update(plane, lambda record: _unpin(record, checkpoint))
                self.cleaner.loosened(plane)
            case Trimmed(plane, revision):
                await self._update(plane, lambda record: _trim(record, revision))
                self.cleaner.trimmed(plane)

    # Changes.

    async def _append(self, plane: str, changes: Sequence[Change]) -> None:
        keys, ident, token = self._keys, self._records.get(plane)[0].id, next(self._tokens)
        first, last, head = changes[0].revision, changes[-1].revision, self._keys.head(ident)
        end, puts = prefix_end(keys.log(ident)), await self._rows(ident, token, changes)
        if ident in self._courtesy:
            self._courtesy.discard(ident)
            await asyncio.sleep(min(_COURTESY, 2 * self._round_trip))
        began = time.monotonic()
        done = await self._client.txn(
            [layout.has_value(head, b"%d" % (first - 1))],
            [*puts, layout.put(head, b"%d" % last)],
            [
                layout.get(head),
                layout.get(keys.change(ident, first), end, limit=_OPERATIONS),
                layout.put(keys.want(ident), self._server),
            ],
        )
        self._round_trip = time.monotonic() - began
        if done.succeeded:
            return
        heads, rows = done.ranges()
        if not heads.kvs:
            raise NoPlane(plane)
        if rows.kvs and layout.decode_row(rows.kvs[0].value).token == token:
            return  # it was sent twice, because the first answer got lost
        await self._report(plane, ident, first - 1, rows.kvs)
        raise Overtaken(plane)

    async def _rows(self, ident: str, token: str, changes: Sequence[Change]) -> list[Json]:
        keys, first = self._keys, changes[0].revision
        if len(changes) <= _OPERATIONS and total_bytes(changes) <= _BYTES:
            return [
                layout.put(keys.change(ident, each.revision), layout.encode_row(token, [each]))
                for each in changes
            ]
        bundle = layout.encode_entries(changes)
        if len(bundle) <= _BYTES:
            return [layout.put(keys.bundle(ident, first), layout.encode_row(token, changes))]
        pieces = range(0, len(bundle), _BYTES)
        for number, start in enumerate(pieces):
            key = keys.parts(ident, token) + b"%06d" % number
            await self._client.txn([], [layout.put(key, bundle[start : start + _BYTES])])
        return [layout.put(keys.bundle(ident, first), layout.encode_reference(token, len(pieces)))]

    async def _report(self, plane: str, ident: str, since: int, rows: Sequence[KeyValue]) -> None:
        """Tell the store what others wrote after a revision, or that part of it is gone."""
        changes = await self._reader.changes(ident, rows)
        if changes and changes[0].revision == since + 1:
            self._feed.happened(plane, changes)
        else:
            self._feed.missed(plane)

    # Planes.

    async def _create(self, plane: str, template: PlaneState) -> None:
        while True:
            lineage: tuple[tuple[str, int], ...] = ()
            compare: list[Json] = []
            refer: list[Json] = []
            ident, base = token_hex(8), template.revision
            if base:
                origin = await self._template(template)
                lineage = ((origin, base),)
                compare = [layout.present(self._keys.dead(origin))]
                refer = [layout.put(self._keys.ref(origin, ident), b"%d" % base)]
            record = Record(ident, lineage, base, base)
            key = self._keys.plane(plane)
            done = await self._client.txn(
                [layout.absent(key), *compare],
                [*self._births([(plane, record)], base), *refer],
                [layout.get(key)],
            )
            if done.succeeded:
                self._records.note(plane, record, done.header.revision)
                return
            (stored,) = done.ranges()
            if stored.kvs:
                if self._is(plane, record, stored.kvs[0]):
                    return
                raise PlaneExists(plane)
            self._templates.pop(template, None)  # nobody used it, and so it was removed

    async def _fork(self, source: str, revision: int, planes: Sequence[str]) -> None:
        made: list[str] = []
        for start in range(0, len(planes), _FORKS):
            names = planes[start : start + _FORKS]
            try:
                await self._fork_some(source, revision, names)
            except StoreError:
                for name in made:
                    await self._delete(name)
                raise
            made += names

    async def _fork_some(self, source: str, revision: int, planes: Sequence[str]) -> None:
        keys, base = self._keys, b"%d" % revision
        forks = [(plane, token_hex(8)) for plane in planes]
        while True:
            record, known = self._records.get(source)
            _require_kept(record, revision)
            lineage = (*record.lineage, (record.id, revision))
            born = [(plane, Record(ident, lineage, revision, revision)) for plane, ident in forks]
            done = await self._client.txn(
                [
                    layout.unchanged(keys.plane(source), known),
                    *(layout.absent(keys.plane(plane)) for plane in planes),
                ],
                [
                    # So that whoever is cleaning the source notices.
                    layout.put(keys.plane(source), layout.encode_record(record)),
                    *self._births(born, revision),
                    *(layout.put(keys.ref(record.id, ident), base) for _, ident in forks),
                ],
                [layout.get(keys.plane(each)) for each in (source, *planes)],
            )
            if done.succeeded:
                for plane, new in [(source, record), *born]:
                    self._records.note(plane, new, done.header.revision)
                return
            sources, *others = done.ranges()
            self._found(source, sources.kvs, done.header.revision)
            taken = [plane for plane, each in zip(born, others, strict=True) if each.kvs]
            ours = [
                self._is(plane, new, each.kvs[0])
                for (plane, new), each in zip(born, others, strict=True)
                if each.kvs
            ]
            if taken and all(ours):
                return
            if taken:
                raise PlaneExists(taken[ours.index(False)][0])

    async def _delete(self, plane: str) -> None:
        key = self._keys.plane(plane)
        while True:
            try:
                record, known = self._records.get(plane)
            except NoPlane:
                return
            done = await self._client.txn(
                [layout.unchanged(key, known)],
                [
                    layout.delete(key),
                    layout.delete(self._keys.head(record.id)),
                    layout.delete(self._keys.want(record.id)),
                    layout.put(self._keys.dead(record.id), layout.encode_record(record)),
                ],
                [layout.get(key)],
            )
            if done.succeeded:
                self._records.note(plane, None, done.header.revision)
                self.cleaner.deleted(record.id)
                return
            self._found(plane, done.ranges()[0].kvs, done.header.revision)

    async def _update(self, plane: str, alter: Callable[[Record], Record]) -> None:
        key = self._keys.plane(plane)
        while True:
            record, known = self._records.get(plane)
            new = alter(record)
            if new == record:
                return
            done = await self._client.txn(
                [layout.unchanged(key, known)],
                [layout.put(key, layout.encode_record(new))],
                [layout.get(key)],
            )
            if done.succeeded:
                self._records.note(plane, new, done.header.revision)
                return
            self._found(plane, done.ranges()[0].kvs, done.header.revision)

    def _births(self, planes: Sequence[tuple[str, Record]], base: int) -> Iterator[Json]:
        for plane, record in planes:
            yield layout.put(self._keys.plane(plane), layout.encode_record(record))
            yield layout.put(self._keys.head(record.id), b"%d" % base)

    def _is(self, plane: str, record: Record, stored: KeyValue) -> bool:
        """Whether what is there is what was to be made, by an attempt whose answer got lost."""
        there = layout.decode_record(stored.value)
        if there.id == record.id:
            self._records.note(plane, there, stored.mod_revision)
            return True
        self._records.learn(self._feed, plane, there, stored.mod_revision)
        return False

    def _found(self, plane: str, stored: Sequence[KeyValue], at: int) -> None:
        """Take note of a record that turned out to be another one, or gone."""
        if stored:
            record = layout.decode_record(stored[0].value)
            self._records.learn(self._feed, plane, record, stored[0].mod_revision)
        else:
            self._records.learn(self._feed, plane, None, at)

    async def _template(self, template: PlaneState) -> str:
        """The id under which a template is stored; many planes share it."""
        async with self._storing:
            ident = self._templates.get(template)
            if ident is None:
                ident = token_hex(8)
                changes = [
                    Change(item.revision, ChangeType.ADDED, resource, item, None, "", 0.0)
                    for resource, item in template
                ]
                changes.sort(key=lambda change: change.revision)
                rows = await self._rows(ident, next(self._tokens), changes) if changes else []
                record = Record(ident, (), template.revision, template.revision)
                dead = layout.put(self._keys.dead(ident), layout.encode_record(record))
                await self._client.txn([], [*rows, dead])
                self._templates[template] = ident
                self._reader.remember(ident, template)
            return ident


def _merged(steps: Sequence[tuple[int, Step]]) -> Iterator[tuple[list[int], Step]]:
    """The steps of a plane, with those that append joined as far as one transaction takes."""
    places: list[int] = []
    changes: list[Change] = []
    plane = ""
    for place, step in steps:
        appends = isinstance(step, Appended)
        if places and not (appends and _fits(changes, step)):
            yield places, Appended(plane, changes)
            places, changes = [], []
        if isinstance(step, Appended):
            plane = step.plane
            places.append(place)
            changes.extend(step.changes)
        else:
            yield [place], step
    if places:
        yield places, Appended(plane, changes)


def _fits(changes: Sequence[Change], step: Step) -> bool:
    if not isinstance(step, Appended) or len(changes) + len(step.changes) > _OPERATIONS:
        return False
    return total_bytes(changes) + total_bytes(step.changes) <= _BYTES


def _require_kept(record: Record, revision: int) -> None:
    """Another server may have let go of what this one still has in memory."""
    if revision < record.compacted and revision not in record.checkpoints.values():
        raise Compacted(revision, record.compacted)


def _pin(record: Record, checkpoint: str, revision: int) -> Record:
    _require_kept(record, revision)
    return replace(record, checkpoints={**record.checkpoints, checkpoint: revision})


def _unpin(record: Record, checkpoint: str) -> Record:
    kept = {name: at for name, at in record.checkpoints.items() if name != checkpoint}
    return replace(record, checkpoints=kept)


def _trim(record: Record, revision: int) -> Record:
    return replace(record, compacted=max(record.compacted, revision))
