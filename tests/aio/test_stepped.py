from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from kvestigate.aio.stepped import LoopClock, SteppedLoop

Run = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


@pytest.fixture
def loop() -> Iterator[SteppedLoop]:
    made = SteppedLoop(1000.0)
    yield made
    made.end()


def settle(loop: SteppedLoop) -> None:
    with loop.entered():
        while loop.turn():
            pass


async def nap(seconds: float) -> str:
    """Takes no real time: only the loop's own passes."""
    await asyncio.sleep(seconds)
    return "woke"


def spawn(loop: SteppedLoop, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    task = loop.create_task(work)
    settle(loop)
    return task


def test_nothing_that_waits_goes_on_before_time_is_moved(loop: SteppedLoop) -> None:
    task = spawn(loop, nap(5.0))
    assert (task.done(), loop.next_timer(), loop.time()) == (False, 1005.0, 1000.0)
    loop.advance(1004.9)
    settle(loop)
    assert not task.done()
    loop.advance(1005.0)
    settle(loop)
    assert task.result() == "woke"


def test_sleepers_wake_by_time_and_those_of_one_time_in_their_order(loop: SteppedLoop) -> None:
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(name)

    for name, seconds in (("c", 3.0), ("a", 1.0), ("d", 3.0), ("b", 2.0)):
        spawn(loop, sleeper(name, seconds))
    loop.advance(1010.0)
    settle(loop)
    assert woken == ["a", "b", "c", "d"]


def test_timeouts_are_of_the_loops_time(loop: SteppedLoop) -> None:
    async def impatient() -> str:
        try:
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        except TimeoutError:
            return "late"
        return "never"

    task = spawn(loop, impatient())
    loop.advance(1030.0)
    settle(loop)
    assert task.result() == "late"


def test_cancelled_timers_are_forgotten(loop: SteppedLoop) -> None:
    timers = [loop.call_later(number, print) for number in range(1, 1000)]
    kept = loop.call_later(5000, print)
    for timer in timers:
        timer.cancel()
    assert loop.next_timer() == kept.when()
    kept.cancel()
    assert loop.next_timer() is None


def test_routine_is_no_work_to_come_but_happens(loop: SteppedLoop) -> None:
    rounds: list[float] = []

    async def repeat() -> None:
        clock = LoopClock(loop).routine()
        while True:
            await clock.sleep(10)
            rounds.append(clock.now())

    spawn(loop, repeat())
    assert (loop.next_work(), loop.next_timer()) == (None, 1010.0)
    for _ in range(2):
        loop.advance(loop.next_timer() or 0)
        settle(loop)
    assert rounds == [1010.0, 1020.0]


def test_time_never_runs_backwards(loop: SteppedLoop) -> None:
    loop.advance(900.0)
    assert loop.time() == 1000.0


async def test_a_future_of_it_can_be_resolved_from_the_loop_around_it() -> None:
    woken: list[int] = []
    inner = SteppedLoop(0.0, woken=lambda: woken.append(1))
    future: asyncio.Future[str] = inner.create_future()

    async def wait() -> str:
        return await future

    task = inner.create_task(wait())

    def run() -> None:
        settle(inner)

    asyncio.get_running_loop().call_soon(run)
    await asyncio.sleep(0)
    woken.clear()
    future.set_result("from outside")
    assert woken, "its owner was told that there is something to run"
    assert inner.ready
    asyncio.get_running_loop().call_soon(run)
    await asyncio.sleep(0)
    assert task.result() == "from outside"
    inner.end()


def test_the_end_ends_every_task(loop: SteppedLoop) -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    inner = SteppedLoop(0.0)
    task = spawn(inner, forever())
    inner.end()
    assert (ended, task.cancelled(), inner.is_closed()) == (["cleaned up"], True, True)


def test_who_takes_time_to_clean_up_gets_it_at_the_end() -> None:
    ended: list[float] = []
    inner = SteppedLoop(0.0)

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await nap(5.0)
            ended.append(inner.time())

    spawn(inner, slow())
    inner.end()
    assert ended == [5.0]


def test_there_are_no_threads(loop: SteppedLoop) -> None:
    with pytest.raises(RuntimeError, match="no threads"):
        loop.call_soon_threadsafe(print)


def test_what_waits_for_idleness_comes_after_all_that_is_ready_by_rank(loop: SteppedLoop) -> None:
    order: list[str] = []
    loop.call_when_idle(2, lambda: order.append("second"))
    loop.call_when_idle(1, lambda: loop.call_soon(order.append, "first"))
    loop.call_soon(lambda: loop.call_soon(order.append, "ready"))
    while loop.ready:
        settle(loop)
        loop.turn_idle()
    assert order == ["ready", "first", "second"]


def test_idleness_is_no_reason_to_let_time_pass(loop: SteppedLoop) -> None:
    loop.call_when_idle(0, lambda: None)
    assert (loop.ready, loop.next_timer()) == (True, None)
    assert (loop.turn_idle(), loop.turn_idle(), loop.ready) == (True, False, False)


def test_a_turn_that_has_to_stop_goes_on_where_it_was_left(loop: SteppedLoop) -> None:
    order: list[str] = []
    for name in ("a", "b", "c"):
        loop.call_soon(order.append, name)
    loop.call_soon(loop.call_soon, order.append, "next turn")
    stages = [(loop.turn(0.0), loop.midway, list(order)) for _ in range(3)]
    assert stages == [(1, True, ["a"]), (1, True, ["a", "b"]), (1, True, ["a", "b", "c"])]
    loop.call_later(0.0, order.append, "timer")
    assert (loop.turn(), loop.midway, order) == (1, False, ["a", "b", "c"])
    loop.turn()
    assert order == ["a", "b", "c", "next turn", "timer"]
