"""Steps into the database. Everything here runs in the backend's one thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import msgpack

from kvestigate.cluster.plane.store.errors import NoPlane
from kvestigate.cluster.plane.store.interface import (
    Appended,
    Created,
    Deleted,
    Forked,
    Loaded,
    Pinned,
    Step,
    Trimmed,
    Unpinned,
)
from kvestigate.cluster.plane.store.model import Change, ChangeType, Item, ResourceKey
from kvestigate.cluster.plane.store.sqlite import schema
from kvestigate.cluster.plane.store.sqlite.cleaning import Cleaner
from kvestigate.cluster.plane.store.sqlite.reader import Reader
from kvestigate.cluster.plane.store.state import PlaneState

_header = msgpack.Encoder()

_WIDEST = 128
"""Rows in one INSERT: as many statements may have to be kept prepared."""


class Log:
    """The open database."""

    def __init__(self, path: Path) -> None:
        self._db = schema.connect(path)
        self._reader = Reader(self._db)
        self._cleaner = Cleaner(self._db)
        self._reload()

    def _reload(self) -> None:
        """Read the small tables that are kept in memory: at the start and after a failure."""
        named = self._db.execute("SELECT name, id FROM plane WHERE name IS NOT NULL")
        self._numbers: dict[str, int] = dict(named)
        resources = self._db.execute('SELECT "group", plural, id FROM resource')
        self._resources: dict[ResourceKey, int] = {
            (group, plural): number for group, plural, number in resources
        }
        self._templates: WeakKeyDictionary[PlaneState, int] = WeakKeyDictionary()
        (highest,) = self._db.execute("SELECT max(id) FROM plane").fetchone()
        self._next = (highest or 0) + 1
        self._free: list[int] = []
        self._cleaner.templates.clear()
        self._cleaner.reload()

    def planes(self) -> Sequence[str]:
        return list(self._numbers)

    def load(self, plane: str) -> Loaded:
        if plane not in self._numbers:
            raise NoPlane(plane)
        return self._reader.load(self._numbers[plane])

    def commit(self, steps: Sequence[Step]) -> bool:
        """All steps in one transaction; whether there is something to clean now."""
        try:
            rows = self._plain_rows(steps)
            if rows is not None:
                _insert(self._db, "version", rows)  # one statement is its own transaction
            elif len(steps) == 1 and self._is_one_statement(steps[0]):
                self._enter(steps[0])
            else:
                self._transact(steps)
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._reload()
            raise
        return self._cleaner.busy

    def _plain_rows(self, steps: Sequence[Step]) -> list[tuple[Any, ...]] | None:
        """The rows, if all there is to do is to insert a few: the case that must be fast."""
        rows: list[tuple[Any, ...]] = []
        for step in steps:
            if not isinstance(step, Appended) or len(rows) + len(step.changes) > _WIDEST:
                return None
            plane = self._numbers[step.plane]
            for change in step.changes:
                if change.resource not in self._resources:
                    return None
                rows.append(self._row(plane, change))
        return rows

    def _is_one_statement(self, step: Step) -> bool:
        match step:
            case Forked(planes=planes):
                return len(planes) <= _WIDEST
            case Created(template=template):
                return not template.revision or template in self._templates
            case _:
                return False

    def _transact(self, steps: Sequence[Step]) -> None:
        self._db.execute("BEGIN")
        rows: list[tuple[Any, ...]] = []
        for step in steps:
            rows.extend(self._enter(step))
        _insert(self._db, "version", rows)
        self._db.execute("COMMIT")

    def tidy(self) -> bool:
        more, purged = self._cleaner.step()
        if purged is not None:
            self._reader.forget(purged)
            self._free.append(purged)
            self._cleaner.templates.discard(purged)
            for template, number in list(self._templates.items()):
                if number == purged:
                    del self._templates[template]
        return more

    def close(self) -> None:
        self._db.close()

    def _enter(self, step: Step) -> Iterable[tuple[Any, ...]]:
        """Note a step; the rows it adds to the log are left to the caller, to be inserted
        together with those of the other steps."""
        match step:
            case Appended(plane, changes):
                return [self._row(self._numbers[plane], change) for change in changes]
            case Created(plane, template):
                return self._create(plane, template)
            case Forked(source, revision, planes):
                self._add(planes, self._numbers[source], revision)
            case Deleted(plane):
                self._delete(self._numbers.pop(plane))
            case Pinned(plane, checkpoint, revision):
                self._pin(self._numbers[plane], checkpoint, revision)
            case Unpinned(plane, checkpoint):
                self._unpin(self._numbers[plane], checkpoint)
            case Trimmed(plane, revision):
                self._trim(self._numbers.get(plane), revision)
        return ()

    def _create(self, plane: str, template: PlaneState) -> Iterable[tuple[Any, ...]]:
        if not template.revision:
            self._add([plane], None, 0)
            return ()
        rows: list[tuple[Any, ...]] = []
        origin = self._templates.get(template)
        if origin is None:
            (origin,) = self._add([None], None, 0, compacted=template.revision)
            self._templates[template] = origin
            self._cleaner.templates.add(origin)
            rows = [self._row(origin, _addition(*each)) for each in template]
        self._add([plane], origin, template.revision)
        return rows

    def _add(
        self, names: Sequence[str | None], parent: int | None, base: int, compacted: int = 0
    ) -> list[int]:
        numbers = [self._new_number() for _ in names]
        since = max(base, compacted)
        rows = [
            (number, name, parent, base, since, since, 0)
            for number, name in zip(numbers, names, strict=True)
        ]
        _insert(self._db, "plane", rows)
        self._numbers.update({name: n for name, n in zip(names, numbers, strict=True) if name})
        return numbers

    def _new_number(self) -> int:
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1

    def _delete(self, plane: int) -> None:
        self._db.execute("UPDATE plane SET name = NULL WHERE id = ?", (plane,))
        self._db.execute("DELETE FROM checkpoint WHERE plane = ?", (plane,))
        self._cleaner.deleted(plane)

    def _pin(self, plane: int, checkpoint: str, revision: int) -> None:
        self._unpin(plane, checkpoint)
        self._db.execute("INSERT INTO checkpoint VALUES (?, ?, ?)", (plane, checkpoint, revision))

    def _unpin(self, plane: int, checkpoint: str) -> None:
        self._db.execute("DELETE FROM checkpoint WHERE plane = ? AND name = ?", (plane, checkpoint))
        self._db.execute("UPDATE plane SET loosened = 1 WHERE id = ?", (plane,))

    def _trim(self, plane: int | None, revision: int) -> None:
        if plane is not None:  # the plane may be gone by the time this arrives
            self._db.execute(
                "UPDATE plane SET compacted = max(compacted, ?) WHERE id = ?", (revision, plane)
            )
            self._cleaner.trimmed(plane)

    def _row(self, plane: int, change: Change) -> tuple[Any, ...]:
        item = change.item
        header = _header.encode((item.uid, item.labels, item.owners, item.fields))
        return (
            schema.key(plane, change.revision),
            int(change.type),
            self._resource(change.resource),
            item.namespace,
            item.name,
            0 if change.previous is None else change.previous.revision,
            item.created_revision,
            change.time,
            change.actor,
            header,
            item.data,
        )

    def _resource(self, resource: ResourceKey) -> int:
        number = self._resources.get(resource)
        if number is None:
            number = self._resources[resource] = len(self._resources) + 1
            self._db.execute("INSERT INTO resource VALUES (?, ?, ?)", (number, *resource))
        return number


def _addition(resource: ResourceKey, item: Item) -> Change:
    return Change(item.revision, ChangeType.ADDED, resource, item, None, "", 0.0)


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Many rows a statement: after each the thread must win the interpreter lock back from a
    busy event loop, which takes far longer than a row does."""
    for start in range(0, len(rows), _WIDEST):
        chunk = rows[start : start + _WIDEST]
        row = f"({', '.join('?' * len(chunk[0]))})"
        db.execute(
            f"INSERT INTO {table} VALUES {', '.join([row] * len(chunk))}",
            [value for values in chunk for value in values],
        )
