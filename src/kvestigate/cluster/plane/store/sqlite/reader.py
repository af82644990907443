"""Planes out of the database."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator
from sys import intern

from msgspec import Struct, msgpack

from kvestigate.cluster.plane.store.interface import Loaded
from kvestigate.cluster.plane.store.model import (
    Change,
    ChangeType,
    Item,
    ResourceKey,
    intern_labels,
)
from kvestigate.cluster.plane.store.sqlite.schema import key, revision_of
from kvestigate.cluster.plane.store.state import EMPTY, PlaneState

_ORIGINS = 32
"""Starting points of forks that are kept, so that the next fork read shares with the last."""


class _Header(Struct, array_like=True, gc=False):
    uid: str
    labels: dict[str, str]
    owners: tuple[str, ...]
    fields: tuple[str, ...]


_header = msgpack.Decoder(_Header)


class Reader:
    """Replays logs."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._origins: OrderedDict[tuple[int, int], PlaneState] = OrderedDict()
        self._resources: dict[int, ResourceKey] = {}

    def forget(self, plane: int) -> None:
        """Its number may be given to another one."""
        for origin in [origin for origin in self._origins if origin[0] == plane]:
            del self._origins[origin]

    def load(self, plane: int) -> Loaded:
        parent, base, compacted = self._db.execute(
            "SELECT parent, base, compacted FROM plane WHERE id = ?", (plane,)
        ).fetchone()
        pins = self._db.execute(
            "SELECT revision, name FROM checkpoint WHERE plane = ? ORDER BY revision DESC", (plane,)
        ).fetchall()
        state = self._origin(parent, base)
        changes, checkpoints = [], {}
        for change, after in self._replay(plane, state, None):
            while pins and pins[-1][0] < change.revision:
                revision, name = pins.pop()
                checkpoints[name] = PlaneState(revision, state.collections)
            state = after
            if change.revision > compacted:
                changes.append(change)
        state = PlaneState(max(state.revision, compacted), state.collections)
        for revision, name in reversed(pins):
            checkpoints[name] = PlaneState(revision, state.collections)
        return Loaded(state, compacted, changes, checkpoints)

    def _origin(self, plane: int | None, revision: int) -> PlaneState:
        """The state of a plane at the revision where another one starts from it."""
        chain: list[tuple[int, int]] = []
        while plane is not None and (plane, revision) not in self._origins:
            chain.append((plane, revision))
            plane, revision = self._db.execute(
                "SELECT parent, base FROM plane WHERE id = ?", (plane,)
            ).fetchone()
        state = EMPTY
        if plane is not None:
            self._origins.move_to_end((plane, revision))
            state = self._origins[plane, revision]
        for each in reversed(chain):
            for _, after in self._replay(each[0], state, each[1]):
                state = after
            state = self._origins[each] = PlaneState(each[1], state.collections)
        while len(self._origins) > _ORIGINS:
            self._origins.popitem(last=False)
        return state

    def _replay(
        self, plane: int, state: PlaneState, until: int | None
    ) -> Iterator[tuple[Change, PlaneState]]:
        """Each change of a plane's own log, with the state after it."""
        last = key(plane + 1, 0) - 1 if until is None else key(plane, until)
        rows = self._db.execute(
            "SELECT id, type, resource, namespace, name, created, time, actor, header, data"
            " FROM version WHERE id BETWEEN ? AND ? ORDER BY id",
            (key(plane, 0), last),
        )
        for row, kind, number, namespace, name, created, time, actor, header, data in rows:
            resource, revision = self._resource(number), revision_of(row)
            before = state.get(resource, namespace, name)
            item = _item(before, namespace, name, revision, created, header, data)
            change = Change(revision, ChangeType(kind), resource, item, before, actor, time)
            if change.type is not ChangeType.DELETED:
                state = state.put(resource, item)
            elif before is not None:
                state = state.remove(resource, namespace, name, revision)
            yield change, state

    def _resource(self, number: int) -> ResourceKey:
        if number not in self._resources:
            rows = self._db.execute('SELECT id, "group", plural FROM resource')
            self._resources = {
                each: (intern(group), intern(plural)) for each, group, plural in rows
            }
        return self._resources[number]


def _item(
    before: Item | None,
    namespace: str,
    name: str,
    revision: int,
    created: int,
    header: bytes,
    data: bytes,
) -> Item:
    parsed = _header.decode(header)
    return Item(
        intern(namespace),
        name if before is None else before.name,
        parsed.uid if before is None or before.uid != parsed.uid else before.uid,
        revision,
        revision if revision == created else created,
        data,
        intern_labels(parsed.labels),
        parsed.owners,
        parsed.fields,
    )
