"""Followers on a plane: what they tell, what they remember, and what they never tell twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvestigate.collect.checkpoint import Checkpoint, Known, Mark
from kvestigate.collect.kinds import BUILT_IN, parse_kind_path
from kvestigate.collect.seen import SeenCache, SeenKey
from kvestigate.collect.watching import Follower, Following, Source, sources_of
from kvestigate.errors import Expired, Forbidden, InputError, UsageError
from tests.collect.conftest import DEPLOYMENTS, Bed

SOURCE = Source(BUILT_IN["Deployment"], DEPLOYMENTS)


@dataclass
class Told:
    """What a follower emitted, settled as soon as it is emitted."""

    checkpoint: Checkpoint
    events: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def emit(self, line: bytes | None, mark: Mark) -> None:
        if line is not None:
            self.events.append(msgspec.json.decode(line))
        self.checkpoint.settle([mark])
        self._news.set()

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(it["event"], it["workload_name"]) for it in self.events]

    async def count(self, wanted: int) -> None:
        async with asyncio.timeout(20):
            while len(self.events) < wanted:
                self._news.clear()
                await self._news.wait()

    async def position(self, source: Source = SOURCE) -> str:
        """Wait for the first list to be done."""
        async with asyncio.timeout(20):
            while not (found := self.checkpoint.position(source.name)):
                self._news.clear()
                await self._news.wait()
        return found


@asynccontextmanager
async def following(bed: Bed, path: Path | None = None, **options: Any) -> AsyncIterator[Told]:
    with closing(Checkpoint(path)) as checkpoint:
        told = Told(checkpoint)
        follower = Follower(
            bed.api, SOURCE, checkpoint, told.emit, told.warnings.append, Following(**options)
        )
        task = asyncio.ensure_future(follower.run())
        try:
            yield told
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_without_a_snapshot_only_changes_are_told(bed: Bed) -> None:
    await bed.create("old")
    async with following(bed) as told:
        await told.position()
        await bed.create("new")
        await bed.change("old", "web:2")
        await bed.delete("old")
        await bed.change("new", "web:3")
        await told.count(3)
    assert told.said == [("ADDED", "new"), ("MODIFIED", "old"), ("MODIFIED", "new")]
    assert [it["containers"][0]["image"] for it in told.events] == ["web:1", "web:2", "web:3"]


async def test_a_snapshot_comes_first_and_once(bed: Bed, path: Path) -> None:
    await bed.create("a", "b")
    async with following(bed, path, emit_initial=True) as told:
        await told.count(2)
        await told.position()
    assert told.said == [("ADDED", "a"), ("ADDED", "b")]
    await bed.create("c")
    async with following(bed, path, emit_initial=True) as told:
        await told.count(1)
    assert told.said == [("ADDED", "c")]


async def test_it_goes_on_where_the_checkpoint_is(bed: Bed, path: Path) -> None:
    async with following(bed, path) as told:
        await told.position()
    await bed.create("a")
    await bed.change("a", "web:2")
    await bed.delete("a")
    async with following(bed, path, emit_deletes=True) as told:
        await told.count(3)
    assert told.said == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    ids = [it["id"] for it in told.events]
    assert len(set(ids)) == 3
    assert len({it.partition("@")[0] for it in ids}) == 1


async def test_a_forgotten_version_means_a_list_that_tells_real_changes(
    bed: Bed, path: Path
) -> None:
    await bed.create("same", "changed", "gone")
    async with following(bed, path, emit_initial=True) as told:
        await told.count(3)
        await told.position()
    ids = {it["workload_name"]: it["id"] for it in told.events}
    await bed.change("changed", "web:2")
    await bed.delete("gone")
    await bed.create("new")
    bed.refusing.append(Expired("too old resource version"))
    async with following(bed, path, emit_deletes=True) as told:
        await told.count(3)
    assert told.said == [("MODIFIED", "changed"), ("ADDED", "new"), ("DELETED", "gone")]
    assert told.events[-1]["id"] == f"{ids['gone']}-deleted"
    assert "listing again" in told.warnings[0]


async def test_an_object_that_cannot_be_read_stops_nothing(bed: Bed) -> None:
    kind = parse_kind_path("apps/v1/Deployment:.metadata.annotations.*")
    async with following(bed) as told:
        follower = Follower(
            bed.api, Source(kind, DEPLOYMENTS), told.checkpoint, told.emit, told.warnings.append
        )
        await bed.create("a")
        await follower.list()
    assert follower.counts.unreadable == 1
    assert "no pod template at .metadata.annotations.*" in told.warnings[-1]


async def test_a_watch_that_is_refused_after_the_list_is_tried_again(bed: Bed) -> None:
    bed.refusing.append(Forbidden("no"))
    async with following(bed) as told:
        await told.position()
        await bed.create("a")
        await told.count(1)
    assert told.warnings == ["deployments.apps: no; retrying until the watch works"]


async def test_sources_are_kinds_times_namespaces(bed: Bed) -> None:
    kinds = (BUILT_IN["Job"], BUILT_IN["Pod"])
    names = [it.name for it in await sources_of(bed.api, kinds, ("a", "b", "a"))]
    assert names == ["jobs.batch/a", "jobs.batch/b", "pods/a", "pods/b"]
    assert [it.name for it in await sources_of(bed.api, kinds, ())] == ["jobs.batch", "pods"]
    with pytest.raises(UsageError, match=r"no kind Fleet in example\.com/v1"):
        await sources_of(bed.api, [parse_kind_path("example.com/v1/Fleet:.spec")], ())


def test_a_checkpoint_outlives_its_process(path: Path) -> None:
    state = Known("7", "shop", "web")
    with closing(Checkpoint(path)) as checkpoint:
        checkpoint.settle([Mark("s", "", "u", state), Mark("s", "8", "v", state)])
        checkpoint.settle([Mark("s", "9", "v"), Mark("t", "1")])
        with pytest.raises(InputError, match="cannot be used as a checkpoint"):
            Checkpoint(path)
    with closing(Checkpoint(path)) as checkpoint:
        assert (checkpoint.position("s"), checkpoint.position("x")) == ("9", "")
        assert checkpoint.known("s") == {"u": state}


def test_a_file_that_is_no_checkpoint(path: Path) -> None:
    path.write_text("something else entirely, and long enough to be looked at" * 20)
    with pytest.raises(InputError, match="file is not a database"):
        Checkpoint(path)


def test_states_are_seen_for_a_while() -> None:
    now = [0.0]
    cache = SeenCache(ttl_sec=10, now=lambda: now[0])
    key = SeenKey("shop", "Deployment", "web", "7")
    assert [cache.seen(key), cache.seen(key), cache.seen(key._replace(resource_version="8"))] == [
        False,
        True,
        False,
    ]
    now[0] = 10.0
    assert not cache.seen(key)
    assert len(cache) == 1
    for number in range(70_000):
        cache.seen(key._replace(name=str(number)))
    assert len(cache) <= 16_384
