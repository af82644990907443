from __future__ import annotations

import asyncio

import pytest

from kvestigate.aio.workqueue import QueueClosed, WorkQueue
from tests.virtual_clock import VirtualClock


async def test_a_key_that_waits_is_not_queued_twice() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert len(queue) == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]


async def test_a_key_added_while_in_work_comes_again_and_only_when_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    async with queue.work() as key:
        queue.add(key)
        assert len(queue) == 0
    assert await queue.get() == "a"


async def test_workers_wait_for_keys_and_each_gets_its_own() -> None:
    queue: WorkQueue[int] = WorkQueue()
    workers = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in range(3):
        queue.add(key)
    assert sorted(await asyncio.gather(*workers)) == [0, 1, 2]


async def test_the_wakeup_of_a_cancelled_worker_goes_to_the_next() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"


async def test_retries_come_later_each_time_until_forgotten() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock, first_retry=1.0, last_retry=60.0)
    pauses = []
    for _ in range(3):
        queue.retry("a")
        wake = await clock.sleeper()
        pauses.append(wake - clock.now())
        clock.advance(pauses[-1])
        async with queue.work():
            pass
    assert 1 <= pauses[0] <= 1.1
    assert 2 <= pauses[1] <= 2.2
    assert 4 <= pauses[2] <= 4.4
    queue.forget("a")
    queue.retry("a")
    assert 1 <= await clock.sleeper() - clock.now() <= 1.1


async def test_of_two_pauses_the_one_that_ends_first_counts() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 10)
    queue.add_after("a", 2)
    queue.add_after("a", 5)
    await asyncio.sleep(0)
    assert await clock.sleeper() == 2
    clock.advance(2)
    assert await queue.get() == "a"


async def test_no_pause_is_an_add() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0)
    assert len(queue) == 1


async def test_a_closed_queue_hands_out_what_waits_and_then_ends() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    queue.add_after("later", 5)
    queue.close()
    queue.add("b")
    assert await queue.get() == "a"
    with pytest.raises(QueueClosed):
        await queue.get()


async def test_closing_wakes_the_workers_that_wait() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.close()
    with pytest.raises(QueueClosed):
        await waiting
