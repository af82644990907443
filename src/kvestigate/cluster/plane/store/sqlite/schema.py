"""Tables and settings of the database."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.files import private_file

VERSION = 1
APPLICATION = int.from_bytes(b"kves", "big")
"""Marks the file as ours, so that nothing else's database is ever written to."""

REVISION_BITS = 40
REVISIONS = (1 << REVISION_BITS) - 1
"""The bits of a key that are the revision."""

_TABLES = """
CREATE TABLE plane (
    id INTEGER PRIMARY KEY,
    name TEXT UNIQUE,            -- NULL: a template, or deleted while forks stand on it
    parent INTEGER,
    base INTEGER NOT NULL,       -- the parent's revision that this plane starts from
    compacted INTEGER NOT NULL,  -- history up to here is not needed
    cleaned INTEGER NOT NULL,    -- history up to here has been removed
    loosened INTEGER NOT NULL    -- 1: a fork or checkpoint that kept old rows is gone
);
CREATE INDEX plane_parent ON plane (parent);
CREATE TABLE checkpoint (
    plane INTEGER NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (plane, name)
) WITHOUT ROWID;
CREATE TABLE resource (
    id INTEGER PRIMARY KEY,
    "group" TEXT NOT NULL,
    plural TEXT NOT NULL
);
CREATE TABLE version (
    id INTEGER PRIMARY KEY,      -- plane << 40 | revision
    type INTEGER NOT NULL,       -- ChangeType
    resource INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    previous INTEGER NOT NULL,   -- the revision that this one replaced, or 0
    created INTEGER NOT NULL,
    time REAL NOT NULL,
    actor TEXT NOT NULL,
    header BLOB NOT NULL,
    data BLOB NOT NULL
);
"""


def key(plane: int, revision: int) -> int:
    """Of a row in `version`: one integer, so that the log needs no second index."""
    return plane << REVISION_BITS | revision


def revision_of(key: int) -> int:
    return key & REVISIONS


def connect(path: Path) -> sqlite3.Connection:
    """Open the database, made if need be, and keep everybody else out."""
    try:
        os.close(private_file(path, os.O_RDWR | os.O_CREAT))  # the files beside it get its mode
    except OSError as error:
        raise StoreFailed(f"{path}: {error.strerror}") from error
    db = sqlite3.connect(
        path, isolation_level=None, timeout=1, check_same_thread=False, cached_statements=256
    )
    try:
        _configure(db)
        db.execute("BEGIN EXCLUSIVE")
        _migrate(db, path)
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _configure(db: sqlite3.Connection) -> None:
    for setting in (
        "page_size = 16384",  # two or three typical objects a page
        "locking_mode = EXCLUSIVE",
        "journal_mode = WAL",
        "synchronous = FULL",  # sync the log at every commit: power loss included
        "wal_autocheckpoint = 1000",  # a short log is soon written over, and that syncs
        "journal_size_limit = 67108864",  # several times faster than a file that grows
        "cache_size = -16384",
        "temp_store = MEMORY",
    ):
        db.execute(f"PRAGMA {setting}").fetchall()


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables:
        for statement in _TABLES.split(";\n"):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
    elif application != APPLICATION:
        raise StoreFailed(f"{path} is a database of something else")
    elif version != VERSION:
        raise StoreFailed(
            f"{path} has schema version {version}; this kvestigate reads {VERSION}",
            hint="use the kvestigate that wrote it, or another directory",
        )
