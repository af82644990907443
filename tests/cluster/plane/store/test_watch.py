"""Watchers are told by whichever loop a plane is written from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import time

from kvestigate.aio.stepped import SteppedLoop
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.model import Change
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.store.watch import AT_ONCE, Subscription
from tests.contracts.store import PODS, put


def run(loop: SteppedLoop, plane: Plane, name: str) -> None:
    """Write in a loop with a time of its own, until nothing is left to do at that time."""
    with loop.entered():
        writing = loop.create_task(plane.write(put(name)))
        while loop.ready:
            loop.turn()
    assert writing.done()


async def test_changes_of_another_time_hold_up_no_others() -> None:
    async with Store(MemoryBackend()) as store:
        plane = await store.create("alpha")
        loop = SteppedLoop(time())
        seen: list[Change] = []
        with plane.subscribe(PODS) as subscription:
            run(loop, plane, "a")
            await plane.write(put("b"))
            run(loop, plane, "c")
            async with asyncio.timeout(5):
                while len(seen) < 3:
                    seen += await anext(subscription)
        loop.close()

    assert [change.item.name for change in seen] == ["a", "b", "c"]


MANY = 3 * AT_ONCE


@contextmanager
def crowd(plane: Plane) -> Iterator[list[Subscription]]:
    """More who watch than are told in one turn."""
    with ExitStack() as stack:
        yield [stack.enter_context(plane.subscribe(PODS)) for _ in range(MANY)]


async def names(subscription: Subscription) -> list[str]:
    async with asyncio.timeout(5):
        return [change.item.name for change in await anext(subscription)]


async def test_of_many_who_watch_a_few_are_told_in_a_turn() -> None:
    async with Store(MemoryBackend()) as store:
        plane = await store.create("alpha")
        with crowd(plane) as subscriptions:
            readers = [asyncio.ensure_future(anext(each)) for each in subscriptions]
            await asyncio.sleep(0)
            await plane.write(put("a"))
            counts = [0]
            while counts[-1] < MANY:
                await asyncio.sleep(0)
                counts.append(sum(each.done() for each in readers))
            assert max(map(int.__sub__, counts[1:], counts)) == AT_ONCE
            read = [[change.item.name for change in each.result()] for each in readers]
            assert read == [["a"]] * MANY


async def test_what_happens_meanwhile_is_told_to_all_afterwards_and_once() -> None:
    async with Store(MemoryBackend()) as store:
        plane = await store.create("alpha")
        with crowd(plane) as subscriptions:
            await plane.write(put("a"))
            await asyncio.sleep(0)
            await plane.write(put("b"))
            await plane.write(put("c"))
            with plane.subscribe(PODS) as late:
                await plane.write(put("d"))
                assert await names(late) == ["d"]
            for each in subscriptions:
                seen: list[str] = []
                while len(seen) < 4:
                    seen += await names(each)
                assert seen == ["a", "b", "c", "d"]


async def test_nobody_is_said_to_know_what_not_all_were_told() -> None:
    async with Store(MemoryBackend()) as store:
        plane = await store.create("alpha")
        with crowd(plane) as subscriptions:
            await plane.write(put("a"))
            assert await names(subscriptions[0]) == ["a"]
            assert subscriptions[0].progress == plane.state.revision
            assert subscriptions[-1].progress < plane.state.revision


async def test_the_end_is_told_after_everything_else() -> None:
    async with Store(MemoryBackend()) as store:
        plane = await store.create("alpha")
        with crowd(plane) as subscriptions:
            await plane.write(put("a"))
            await asyncio.sleep(0)
            await plane.write(put("b"))
            subscriptions[-1].close()
            plane.end_watches(PODS)
            for each in subscriptions[:-1]:
                seen = [change.item.name async for changes in each for change in changes]
                assert seen == ["a", "b"]
            assert [changes async for changes in subscriptions[-1]] == []
            with plane.subscribe(PODS) as another:
                await plane.write(put("c"))
                assert await names(another) == ["c"]
