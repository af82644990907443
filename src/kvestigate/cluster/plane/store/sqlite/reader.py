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
from kvestigate.cluster.plane.store.state import EMPTY, PlaneState, replay

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
        pins = self._db.execute("SELECT name, revision FROM checkpoint WHERE plane = ?", (plane,))
        changes = self._changes(plane, key(plane + 1, 0) - 1)
        return Loaded.replayed(
            self._origin(parent, base), changes, compacted, compacted, dict(pins)
        )

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
        for ancestor, until in reversed(chain):
            for change in self._changes(ancestor, key(ancestor, until)):
                state = replay(state, change)
            state = self._origins[ancestor, until] = PlaneState(until, state.collections)
        while len(self._origins) > _ORIGINS:
            self._origins.popitem(last=False)
        return state

    def _changes(self, plane: int, last: int) -> Iterator[Change]:
        """The changes of a plane's own log up to a key, without `previous`."""
        rows = self._db.execute(
            "SELECT id, type, resource, namespace, name, created, time, actor, header, data"
            " FROM version WHERE id BETWEEN ? AND ? ORDER BY id",
            (key(plane, 0), last),
        )
        for row, kind, number, namespace, name, created, time, actor, header, data in rows:
            revision, parsed = revision_of(row), _header.decode(header)
            item = Item(
                intern(namespace),
                name,
                parsed.uid,
                revision,
                created,
                data,
                intern_labels(parsed.labels),
                parsed.owners,
                parsed.fields,
            )
            resource = self._resource(number)
            yield Change(revision, ChangeType(kind), resource, item, None, actor, time)

    def _resource(self, number: int) -> ResourceKey:
        if number not in self._resources:
            rows = self._db.execute('SELECT id, "group", plural FROM resource')
            self._resources = {
                each: (intern(group), intern(plural)) for each, group, plural in rows
            }
        return self._resources[number]
