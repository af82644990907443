"""How far each stream has come and what it has told: a small SQLite file, or memory.

A mark is written after its event has reached every sink. So after a crash at any moment the
stream goes on at or before where it was: nothing is missing, and what comes again has the id
that it had. A write survives the end of the process; after a power failure the last ones may
be gone, which only means more repeats.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kvestigate.errors import InputError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS positions (stream TEXT PRIMARY KEY, version TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS known (
    stream TEXT NOT NULL,
    uid TEXT NOT NULL,
    version TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (stream, uid)
) WITHOUT ROWID;
"""


class Known(NamedTuple):
    """The last state of an object that was told."""

    version: str
    namespace: str
    name: str


class Mark(NamedTuple):
    """What is settled once an event has reached every sink."""

    stream: str
    position: str = ""
    """The stream need not go back before this resource version; empty leaves it."""
    uid: str = ""
    """The object that the event was of; empty for none."""
    state: Known | None = None
    """Its state; None when it is gone."""


class Checkpoint:
    """Positions and known objects of all streams. Close it."""

    def __init__(self, path: Path | None = None) -> None:
        try:
            self._database = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1)
            # One collector a file: the second is refused instead of mixing the two.
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise InputError(
                f"cannot be used as a checkpoint: {error}",
                where=str(path),
                hint="give each collector a file of its own, in a directory that it may write to",
            ) from error

    def position(self, stream: str) -> str:
        """Where the stream goes on; empty if it never came to the end of its first list."""
        query = "SELECT version FROM positions WHERE stream = ?"
        row = self._database.execute(query, (stream,)).fetchone()
        return row[0] if row else ""

    def known(self, stream: str) -> dict[str, Known]:
        """By uid, what was told of the objects that were there last."""
        query = "SELECT uid, version, namespace, name FROM known WHERE stream = ?"
        return {uid: Known(*state) for uid, *state in self._database.execute(query, (stream,))}

    def settle(self, marks: Sequence[Mark]) -> None:
        """Write marks, all or none."""
        states = [(mark.stream, mark.uid, *mark.state) for mark in marks if mark.uid and mark.state]
        gone = [(mark.stream, mark.uid) for mark in marks if mark.uid and mark.state is None]
        database = self._database
        database.execute("BEGIN")
        with database:
            database.executemany("INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?, ?)", states)
            database.executemany("DELETE FROM known WHERE stream = ? AND uid = ?", gone)
            positions = {mark.stream: mark.position for mark in marks if mark.position}
            database.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?)", positions.items()
            )

    def close(self) -> None:
        self._database.close()
