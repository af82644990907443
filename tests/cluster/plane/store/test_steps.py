"""The long ways of a plane are gone in steps, and arrive at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kvestigate.cluster.plane.store.errors import Mismatch, NoPlane
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.store import Store
from tests.contracts.store import PODS, contents, put, remove

COUNT = 100


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with Store(MemoryBackend()) as store:
        yield store


@pytest.fixture
async def plane(store: Store) -> Plane:
    """One whose objects have all changed since revision COUNT."""
    plane = await store.create("one")
    await plane.commit([put(str(number), "old") for number in range(COUNT)])
    await plane.commit([put(str(number), "new", expect=number + 1) for number in range(COUNT)])
    return plane


async def test_nobody_sees_half_of_a_restore(plane: Plane) -> None:
    past, seen = plane.at(COUNT), []

    async def breathe() -> None:
        await asyncio.sleep(0)
        seen.append(set(contents(plane.state).values()))

    with plane.subscribe(PODS) as watch:
        changes = await plane.restore(past, "trainer", breathe)
        assert await anext(watch) == changes

    assert seen == [{"new"}] * len(seen)
    assert len(seen) > 3
    assert contents(plane.state) == contents(past)
    assert plane.state.revision == 3 * COUNT


async def test_who_writes_meanwhile_waits_and_is_judged_by_what_was_restored(plane: Plane) -> None:
    begun: list[asyncio.Task[object]] = []

    async def breathe() -> None:
        if not begun:
            begun.append(asyncio.create_task(plane.write(put("0", "newer", expect=COUNT + 1))))
            begun.append(asyncio.create_task(plane.write(put("more", "x"))))
        await asyncio.sleep(0)

    await plane.restore(plane.at(COUNT), "trainer", breathe)
    outdated, more = await asyncio.gather(*begun, return_exceptions=True)

    assert isinstance(outdated, Mismatch)
    assert not isinstance(more, BaseException)
    assert plane.state.revision == 3 * COUNT + 1


async def test_who_gives_up_restoring_changes_nothing(plane: Plane) -> None:
    before = plane.state

    async def forever() -> None:
        await asyncio.Event().wait()

    restoring = asyncio.create_task(plane.restore(plane.at(COUNT), "", forever))
    await asyncio.sleep(0)
    writing = asyncio.create_task(plane.write(remove("0", COUNT + 1)))
    await asyncio.sleep(0)
    assert not writing.done()

    restoring.cancel()

    await writing
    assert plane.state.revision == before.revision + 1


async def test_a_plane_that_is_deleted_meanwhile_is_not_restored(
    store: Store, plane: Plane
) -> None:
    async def breathe() -> None:
        if "one" in store.planes():
            await store.delete("one")

    with pytest.raises(NoPlane):
        await plane.restore(plane.at(COUNT), "", breathe)


@pytest.mark.parametrize("revision", [0, 1, 57, COUNT, 2 * COUNT - 1, 2 * COUNT, 1000])
async def test_the_past_is_the_same_in_steps(plane: Plane, revision: int) -> None:
    steps: list[int] = []

    async def breathe() -> None:
        steps.append(1)

    found = await plane.recall(revision, breathe)

    assert contents(found) == contents(plane.at(revision))
    assert found.revision == min(revision, plane.state.revision)
    assert len(steps) >= (plane.state.revision - found.revision) / 20


async def test_a_checkpoint_needs_no_steps(plane: Plane) -> None:
    kept = await plane.checkpoint("start")
    await plane.write(put("more", "x"))

    async def breathe() -> None:
        pytest.fail("there is nothing to undo")

    assert await plane.recall(kept.revision, breathe) is kept
