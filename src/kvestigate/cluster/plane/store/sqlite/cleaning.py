"""Removing rows that nobody can see any more, a piece at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from kvestigate.cluster.plane.store.garbage import Row, View, superseded, unseen
from kvestigate.cluster.plane.store.model import ChangeType
from kvestigate.cluster.plane.store.sqlite.schema import REVISIONS, key

_decode = msgspec.json.Decoder(list[Row]).decode

_PIECE = 2000
"""Rows of a dead plane removed at once: some ten milliseconds."""


class Cleaner:
    """Knows which planes have something to clean."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._trimmed: set[int] = set()
        self._dead: set[int] = set()
        self.templates: set[int] = set()
        """Nameless, but more planes may start from them."""

    def reload(self) -> None:
        trimmed = self._db.execute("SELECT id FROM plane WHERE cleaned < compacted")
        self._trimmed = {plane for (plane,) in trimmed}
        dead = self._db.execute("SELECT id FROM plane WHERE name IS NULL")
        self._dead = {plane for (plane,) in dead}

    def trimmed(self, plane: int) -> None:
        self._trimmed.add(plane)

    def deleted(self, plane: int) -> None:
        self._trimmed.discard(plane)
        self._dead.add(plane)

    @property
    def busy(self) -> bool:
        """Whether there is anything to clean."""
        return bool(self._dead or self._trimmed)

    def step(self) -> tuple[bool, int | None]:
        """(is there more to do, the number of a plane that is gone for good)"""
        purged = None
        self._db.execute("BEGIN")
        try:
            if self._dead:
                purged = self._bury(self._dead.pop())
            elif self._trimmed:
                self._compact(self._trimmed.pop())
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self.reload()
            raise
        return self.busy, purged

    def _bury(self, plane: int) -> int | None:
        """A deleted plane: all of it if nothing stands on it, else what its forks cannot see."""
        pins = self._pins(plane)
        if pins:
            return self._reduce(plane, pins)
        removed = self._db.execute(
            "DELETE FROM version WHERE id IN"
            " (SELECT id FROM version WHERE id BETWEEN ? AND ? LIMIT ?)",
            (key(plane, 0), key(plane + 1, 0) - 1, _PIECE),
        ).rowcount
        if removed == _PIECE:
            self._dead.add(plane)
            return None
        (parent,) = self._db.execute(
            "DELETE FROM plane WHERE id = ? RETURNING parent", (plane,)
        ).fetchone()
        self._release(parent)
        return plane

    def _reduce(self, plane: int, pins: Sequence[int]) -> int | None:
        """Keep what forks see; if that is just one, let it have that and be gone."""
        (base,) = self._db.execute("SELECT base FROM plane WHERE id = ?", (plane,)).fetchone()
        rows = self._rows(plane)
        garbage = list(unseen(rows, View(base, 0, pins, alive=False)))
        self._remove(plane, garbage)
        forks = self._db.execute("SELECT id FROM plane WHERE parent = ?", (plane,)).fetchall()
        if len(forks) > 1 or plane in self.templates or len(rows) - len(garbage) > _PIECE:
            return None
        self._fold(plane, forks[0][0])
        return plane

    def _fold(self, plane: int, fork: int) -> None:
        """Move a dead plane's log below that of its only fork.

        Else an agent that forks, goes on in the fork and drops the source, step by step,
        would leave a chain as long as its walk. The revisions cannot clash: what is left of
        the source is older than the fork.
        """
        self._db.execute(
            "UPDATE version SET id = id + ? WHERE id BETWEEN ? AND ?",
            (key(fork, 0) - key(plane, 0), key(plane, 0), key(plane + 1, 0) - 1),
        )
        self._db.execute(
            "UPDATE plane SET (parent, base, loosened) ="
            " (SELECT parent, base, 1 FROM plane WHERE id = ?) WHERE id = ?",
            (plane, fork),
        )
        self._db.execute("DELETE FROM plane WHERE id = ?", (plane,))
        (name,) = self._db.execute("SELECT name FROM plane WHERE id = ?", (fork,)).fetchone()
        (self._trimmed if name is not None else self._dead).add(fork)

    def _release(self, parent: int | None) -> None:
        """One fork less stands on it."""
        updated = self._db.execute(
            "UPDATE plane SET loosened = 1 WHERE id = ? RETURNING name", (parent,)
        ).fetchone()
        if parent is not None and updated is not None and updated[0] is None:
            self._dead.add(parent)

    def _compact(self, plane: int) -> None:
        row = self._db.execute(
            "SELECT base, compacted, cleaned, loosened FROM plane WHERE id = ?", (plane,)
        ).fetchone()
        base, compacted, cleaned, loosened = row
        view = View(base, compacted, self._pins(plane))
        if loosened:
            garbage = unseen(self._rows(plane), view)
        else:
            garbage = superseded(self._replacements(plane, cleaned + 1, compacted), view)
        self._remove(plane, list(garbage))
        self._db.execute(
            "UPDATE plane SET cleaned = ?, loosened = 0 WHERE id = ?", (compacted, plane)
        )

    def _pins(self, plane: int) -> list[int]:
        rows = self._db.execute(
            "SELECT base FROM plane WHERE parent = ?1"
            " UNION SELECT revision FROM checkpoint WHERE plane = ?1 ORDER BY 1",
            (plane,),
        )
        return [revision for (revision,) in rows]

    def _rows(self, plane: int) -> Sequence[Row]:
        """All of them, by object, then revision."""
        return sorted(self._read("id BETWEEN ? AND ?", key(plane, 0), key(plane + 1, 0) - 1))

    def _replacements(self, plane: int, first: int, last: int) -> Sequence[Row]:
        """Of a piece of the log the rows that took something's place: mostly there are few."""
        return self._read(
            "id BETWEEN ? AND ? AND (previous OR type = ?)",
            key(plane, first),
            key(plane, last),
            int(ChangeType.DELETED),
        )

    def _read(self, condition: str, *values: int) -> list[Row]:
        """As one result: after each one the thread must win the interpreter lock back from a busy
        event loop, which takes far longer than a row does."""
        (rows,) = self._db.execute(
            "SELECT json_group_array(json_array(json_array(resource, namespace, name),"
            f" id & {REVISIONS}, type, previous, created)) FROM version WHERE {condition}",
            values,
        ).fetchone()
        return _decode(rows)

    def _remove(self, plane: int, revisions: Sequence[int]) -> None:
        for start in range(0, len(revisions), 500):
            keys = [key(plane, revision) for revision in revisions[start : start + 500]]
            marks = ", ".join("?" * len(keys))
            self._db.execute(f"DELETE FROM version WHERE id IN ({marks})", keys)
