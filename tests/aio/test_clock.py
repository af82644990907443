from __future__ import annotations

import asyncio

from kvestigate.aio.clock import WALL
from tests.virtual_clock import VirtualClock


async def test_virtual_time_stands_still_until_it_is_moved() -> None:
    clock = VirtualClock(start=100.0)
    assert clock.now() == 100.0
    clock.advance(2.5)
    assert clock.now() == 102.5


async def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock = VirtualClock()
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    tasks = [asyncio.ensure_future(sleeper("late", 5)), asyncio.ensure_future(sleeper("soon", 1))]
    assert await clock.sleeper() > 0
    await asyncio.sleep(0)
    assert clock.next_wake == 1
    clock.advance(4)
    await tasks[1]
    assert woken == ["soon"]
    clock.advance(1)
    await asyncio.gather(*tasks)
    assert woken == ["soon", "late"]


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = VirtualClock()
    task = asyncio.ensure_future(clock.sleep(3))
    assert await clock.sleeper() == 3
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.next_wake is None


async def test_no_sleep_at_all_only_lets_others_run() -> None:
    await VirtualClock().sleep(0)
    await WALL.sleep(0)
    assert WALL.now() > 1_700_000_000
