"""Planes out of etcd, each as it was at one etcd revision."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence

from kvestigate.cluster.plane.store.errors import NoPlane
from kvestigate.cluster.plane.store.etcd.client import EtcdClient, KeyValue, prefix_end
from kvestigate.cluster.plane.store.etcd.layout import (
    Keys,
    Record,
    Row,
    changes_of,
    decode_entries,
    decode_record,
    decode_row,
)
from kvestigate.cluster.plane.store.interface import Loaded
from kvestigate.cluster.plane.store.model import Change
from kvestigate.cluster.plane.store.state import EMPTY, PlaneState, replay

_PAGE = 500
"""Keys asked for at once: a few MB."""

_ORIGINS = 32
"""Starting points of forks that are kept, so that the next fork read shares with the last."""


class Reader:
    def __init__(self, client: EtcdClient, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._origins: OrderedDict[tuple[str, int], PlaneState] = OrderedDict()

    async def planes(self) -> tuple[int, list[tuple[str, Record, int]]]:
        """The etcd revision, and of each plane the name, the record and when it was written."""
        prefix = self._keys.planes
        at, rows = await self._all(prefix, prefix_end(prefix))
        skip = len(prefix)
        records = [
            (each.key[skip:].decode(), decode_record(each.value), each.mod_revision)
            for each in rows
        ]
        return at, records

    async def dead(self) -> list[str]:
        prefix = self._keys.deads
        _, rows = await self._all(prefix, prefix_end(prefix))
        return [each.key[len(prefix) :].decode() for each in rows]

    async def load(self, name: str) -> tuple[Loaded, Record, int]:
        """The plane, its record and the etcd revision at which that was written."""
        answer = await self._client.range(self._keys.plane(name))
        if not answer.kvs:
            raise NoPlane(name)
        at, record = answer.header.revision, decode_record(answer.kvs[0].value)
        heads = await self._client.range(self._keys.head(record.id), revision=at)
        origin = await self._origin(record.lineage, at)
        changes = [each async for each in self.log(record.id, at)]
        loaded = Loaded.replayed(
            origin, changes, record.compacted, int(heads.kvs[0].value), record.checkpoints
        )
        return loaded, record, answer.kvs[0].mod_revision

    def remember(self, ident: str, state: PlaneState) -> None:
        """The log of `id` leads to this very state."""
        self._origins[ident, state.revision] = state
        while len(self._origins) > _ORIGINS:
            self._origins.popitem(last=False)

    async def log(self, ident: str, at: int = 0) -> AsyncIterator[Change]:
        """The changes of a plane's own log."""
        start, end = self._keys.log(ident), prefix_end(self._keys.log(ident))
        async for page in self.pages(start, end, at):
            for change in await self.changes(ident, page):
                yield change

    async def changes(self, ident: str, rows: Iterable[KeyValue]) -> list[Change]:
        """What some rows of a log say."""
        history: list[Change] = []
        for each in rows:
            history += changes_of((await self.entries(ident, each)).entries)
        return history

    async def entries(self, ident: str, stored: KeyValue) -> Row:
        """A row of a log, put together if it is in pieces."""
        row = decode_row(stored.value)
        if row.parts:
            prefix = self._keys.parts(ident, row.token)
            _, parts = await self._all(prefix, prefix_end(prefix))
            row.entries = decode_entries(b"".join(part.value for part in parts))
        return row

    async def pages(
        self, start: bytes, end: bytes, at: int = 0
    ) -> AsyncIterator[Sequence[KeyValue]]:
        more = True
        while more:
            answer = await self._client.range(start, end, limit=_PAGE, revision=at)
            at = at or answer.header.revision
            if answer.kvs:
                start = answer.kvs[-1].key + b"\0"
                yield answer.kvs
            more = answer.more

    async def _all(self, start: bytes, end: bytes) -> tuple[int, list[KeyValue]]:
        first = await self._client.range(start, end, limit=_PAGE)
        at, stored = first.header.revision, first.kvs
        if first.more:
            async for page in self.pages(stored[-1].key + b"\0", end, at):
                stored += page
        return at, stored

    async def _origin(self, lineage: Sequence[tuple[str, int]], at: int) -> PlaneState:
        """The state that a plane with these ancestors starts from."""
        missing: list[tuple[str, int]] = []
        state = EMPTY
        for each in reversed(lineage):
            if each in self._origins:
                self._origins.move_to_end(each)
                state = self._origins[each]
                break
            missing.append(each)
        for ident, revision in reversed(missing):
            async for change in self.log(ident, at):
                if change.revision <= revision:
                    state = replay(state, change)
            state = PlaneState(revision, state.collections)
            self.remember(ident, state)
        return state
