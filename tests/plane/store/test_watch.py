"""Watchers are told by whichever loop a plane is written from."""

from __future__ import annotations

import asyncio
from time import time

from kvestigate.aio.stepped import SteppedLoop
from kvestigate.plane.store.memory import MemoryBackend
from kvestigate.plane.store.model import Change
from kvestigate.plane.store.plane import Plane
from kvestigate.plane.store.store import Store
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
