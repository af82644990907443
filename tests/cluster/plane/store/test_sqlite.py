"""The store on SQLite keeps the contract, and everything else over a restart."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.cluster.plane.store.history import Retention
from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.state import assemble
from kvestigate.cluster.plane.store.store import Store
from tests.contracts.store import (
    NODES,
    PODS,
    Clock,
    MakeBackend,
    StoreContract,
    contents,
    exact,
    put,
    read,
    remove,
    revisions,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "planes.db"


def rows(path: Path, table: str) -> int:
    """How much is in a table, looked at from outside."""
    with closing(sqlite3.connect(path)) as db:
        (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """No file of this process can grow beyond `limit` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestSqlite(StoreContract):
    @pytest.fixture
    def make_backend(self, path: Path) -> MakeBackend:
        return lambda: SqliteBackend(path)


async def test_a_watch_resumes_over_a_restart(path: Path) -> None:
    async with Store(SqliteBackend(path)) as store:
        plane = await store.create("one")
        await plane.commit([put("a", 1), put("b", 1), put("a", 2, expect=1)], actor="alice")
        before = plane.events_since(0)
    async with Store(SqliteBackend(path)) as store:
        plane = await store.plane("one")
        assert plane.events_since(0) == before
        with plane.subscribe(PODS, since=1) as watch:
            await plane.write(remove("b", 2), actor="bob")
            changes = await read(watch, 3)
    assert revisions(changes) == [2, 3, 4]
    assert [change.actor for change in changes] == ["alice", "alice", "bob"]


async def test_opening_reads_only_names(path: Path) -> None:
    async with Store(SqliteBackend(path)) as store:
        for name in "abc":
            await (await store.create(name)).write(put("x", name))
    async with Store(SqliteBackend(path)) as store:
        assert store.planes() == ["a", "b", "c"]
        assert [store.loaded(name) for name in "abc"] == [None] * 3
        await store.plane("b")
        assert [store.loaded(name) is None for name in "abc"] == [True, False, True]


async def test_forks_share_memory_after_a_restart_too(path: Path) -> None:
    template = assemble([put("a"), put("n", resource=NODES, namespace="")])
    async with Store(SqliteBackend(path)) as store:
        source = await store.create("source", template)
        await source.write(put("b"))
        for fork in await store.fork("source", ["left", "right"]):
            await fork.write(put("c", fork.name))
        await store.create("other", template)
    async with Store(SqliteBackend(path)) as store:
        planes = [await store.plane(name) for name in ("source", "left", "right", "other")]
        items = [plane.state.get(PODS, "default", "a") for plane in planes]
        assert items[0] is not None
        assert all(item is items[0] for item in items)
        left, right = (plane.state.collection(NODES) for plane in planes[1:3])
        assert left is right


async def test_forks_and_templates_are_not_copied(path: Path) -> None:
    template = assemble([put(str(n)) for n in range(100)])
    async with Store(SqliteBackend(path)) as store:
        for n in range(20):
            plane = await store.create(f"plane-{n}", template)
            await plane.write(put("mine"))
            await store.fork(plane.name, [f"fork-{n}-{k}" for k in range(5)])
    assert rows(path, "version") == 120
    assert rows(path, "plane") == 1 + 20 + 100


async def test_what_nobody_can_see_is_removed(path: Path) -> None:
    async with Store(SqliteBackend(path), Retention(changes=5)) as store:
        plane = await store.create("one")
        for n in range(50):
            await plane.write(put("a", n, expect=n))
        await plane.write(remove("a", 50))
        await store.idle()
        await store.create("two")
        await store.delete("one")
        await store.idle()
    assert rows(path, "version") == 0
    assert rows(path, "plane") == 1


async def test_history_on_disk_is_bounded_under_load(path: Path) -> None:
    async with Store(SqliteBackend(path), Retention(changes=20)) as store:
        plane = await store.create("one")
        last = 0
        for n in range(300):
            last = (await plane.write(put("a", n, expect=last))).revision
        await store.idle()
    assert rows(path, "version") <= 23


async def test_a_long_walk_from_fork_to_fork_leaves_no_chain(path: Path) -> None:
    async with Store(SqliteBackend(path)) as store:
        plane = await store.create("step-0", assemble([put("a", "start"), put("fixed")]))
        for n in range(1, 30):
            await plane.write(put("a", n, expect=plane.state.revision if n > 1 else 1))
            (following,) = await store.fork(plane.name, [f"step-{n}"])
            await store.delete(plane.name)
            plane = following
        await store.idle()
        before = exact(plane.state)
    async with Store(SqliteBackend(path)) as store:
        assert store.planes() == ["step-29"]
        assert exact((await store.plane("step-29")).state) == before
    assert rows(path, "plane") == 2
    assert rows(path, "version") == 3


async def test_a_database_has_one_owner(path: Path) -> None:
    async with Store(SqliteBackend(path)) as store:
        await store.create("one")
        second = SqliteBackend(path)
        with pytest.raises(StoreFailed, match="locked") as caught:
            await second.open(store)
        await second.close()
        assert caught.value.hint is not None
    async with Store(SqliteBackend(path)) as store:
        assert store.planes() == ["one"]


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("CREATE TABLE theirs (a)", "something else"),
        ("PRAGMA user_version = 99", "schema version 99"),
    ],
)
async def test_a_database_that_is_not_ours_is_left_alone(
    path: Path, statement: str, complaint: str
) -> None:
    if "PRAGMA" in statement:
        async with Store(SqliteBackend(path)):
            pass
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
    backend = SqliteBackend(path)
    with pytest.raises(StoreFailed, match=complaint):
        await backend.open(Store(backend))
    await backend.close()


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_text("not a database, " * 1000)

    async def open_it() -> None:
        async with Store(SqliteBackend(path)):
            pass

    with pytest.raises(StoreFailed, match="not a database"):
        asyncio.run(open_it())
    assert path.read_text() == "not a database, " * 1000


async def test_a_full_disk_refuses_writes_and_loses_none(path: Path) -> None:
    async with Store(SqliteBackend(path)) as store:
        plane = await store.create("one")
        await plane.write(put("before", "x" * 100_000))
        watch = plane.subscribe(PODS)
        with full_disk(1_000_000):
            with pytest.raises(StoreFailed):
                await asyncio.gather(
                    *(plane.write(put(f"big-{n}", "x" * 100_000)) for n in range(20))
                )
            with pytest.raises(StoreFailed):
                await store.create("two", assemble([put("huge", "x" * 2_000_000)]))
            kept = plane.state
            assert plane.tip is kept
            assert store.planes() == ["one"]
        after = await plane.write(put("after"))
        assert after.revision == kept.revision + 1
        seen = await read(watch, after.revision - 1)
        assert revisions(seen) == list(range(2, after.revision + 1))
        final = plane.state
        await store.create("two")
    async with Store(SqliteBackend(path)) as store:
        assert exact((await store.plane("one")).state) == exact(final)
        assert contents((await store.plane("two")).state) == {}


async def test_a_revision_is_not_given_twice_when_all_history_is_gone(path: Path) -> None:
    clock = Clock()
    async with Store(SqliteBackend(path), Retention(seconds=60), clock) as store:
        plane, other = await store.create("one"), await store.create("other")
        await plane.commit([put("a"), remove("a", 1)])
        clock.now += 3600
        await other.write(put("b"))
        await store.idle()
        assert plane.compacted == 2
    assert rows(path, "version") == 1
    async with Store(SqliteBackend(path), Retention(seconds=60), clock) as store:
        plane = await store.plane("one")
        assert (await plane.write(put("a"))).revision == 3


async def test_what_was_deleted_after_a_fold_stays_deleted(path: Path) -> None:
    async with Store(SqliteBackend(path), Retention(changes=2)) as store:
        source = await store.create("source")
        await source.write(put("x", "old"))
        await store.fork("source", ["kept", "dropped"])
        kept = await store.plane("kept")
        await kept.write(put("x", "new", expect=1))
        await kept.commit([put(f"filler-{n}") for n in range(10)])
        await store.idle()
        await store.delete("source")
        await store.delete("dropped")
        await store.idle()
        assert contents(kept.state)[PODS, "default", "x"] == "new"
        await kept.write(remove("x", 2))
        await kept.commit([put(f"more-{n}") for n in range(10)])
        await store.idle()
    assert rows(path, "plane") == 1
    assert rows(path, "version") == 20
    async with Store(SqliteBackend(path)) as store:
        assert (PODS, "default", "x") not in contents((await store.plane("kept")).state)
