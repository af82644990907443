"""A coroutine that is run outside of its task is, to itself, run by that task from the start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest

from kvestigate.http.resume import Nap


class Sleeper:
    """A task that sleeps; `returned` has what coroutines returned that needed no task."""

    def __init__(self) -> None:
        self.returned: list[object] = []
        self.sleeps_on = True
        self.task = asyncio.create_task(self._sleep())

    async def _sleep(self) -> object:
        self.nap = Nap(self.task, self._ended)
        return await self.nap.over()

    def _ended(self, result: object) -> bool:
        self.returned.append(result)
        return self.sleeps_on

    async def run(self, coroutine: Coroutine[Any, Any, object], *, cancelled: bool = False) -> None:
        """As a callback of the loop does, right after which the task may be cancelled."""
        called = asyncio.get_running_loop().create_future()

        def call() -> None:
            self.nap.run(coroutine)
            if cancelled:
                self.task.cancel()
            called.set_result(None)

        asyncio.get_running_loop().call_soon(call)
        await called


@pytest.fixture
async def sleeper() -> AsyncIterator[Sleeper]:
    sleeper = Sleeper()
    await asyncio.sleep(0)
    yield sleeper
    sleeper.task.cancel()
    await asyncio.gather(sleeper.task, return_exceptions=True)


async def test_what_needs_no_waiting_is_done_at_once(sleeper: Sleeper) -> None:
    async def work() -> object:
        return asyncio.current_task()

    await sleeper.run(work())
    assert sleeper.returned == [sleeper.task]
    assert sleeper.nap.undisturbed


async def test_what_waits_once_needs_no_task(sleeper: Sleeper) -> None:
    ready = asyncio.get_running_loop().create_future()

    async def work() -> tuple[object, object]:
        return await ready, asyncio.current_task()

    await sleeper.run(work())
    assert not sleeper.nap.undisturbed
    ready.set_result("ready")
    await asyncio.sleep(0)
    assert sleeper.returned == [("ready", sleeper.task)]
    assert sleeper.nap.undisturbed


async def test_the_task_sleeps_until_what_is_under_way_has_ended(sleeper: Sleeper) -> None:
    ready = asyncio.get_running_loop().create_future()
    sleeper.sleeps_on = False

    async def work() -> object:
        return await ready

    await sleeper.run(work())
    sleeper.nap.wake()
    await asyncio.sleep(0)
    assert not sleeper.task.done()
    ready.set_result("ready")
    assert await sleeper.task is None
    assert sleeper.returned == ["ready"]


async def _fails() -> None:
    raise ValueError("bad")


async def _fails_later() -> None:
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    raise ValueError("bad")


async def _waits_for_what_fails() -> None:
    await asyncio.create_task(_fails_later())


@pytest.mark.parametrize("work", [_fails, _fails_later, _waits_for_what_fails])
async def test_a_failure_is_the_tasks(
    sleeper: Sleeper, work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    await sleeper.run(work())
    with pytest.raises(ValueError, match="bad"):
        await sleeper.task


async def _sleeps() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def _waits_twice() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(2):
        ready = loop.create_future()
        loop.call_soon(ready.set_result, None)
        await ready


async def _times_out() -> None:
    async with asyncio.timeout(0):
        await asyncio.Event().wait()


async def _times_out_later() -> None:
    async with asyncio.timeout(0.001):
        await asyncio.Event().wait()


async def _swallows_its_timeout() -> None:
    try:
        await _times_out()
    except TimeoutError:
        await _sleeps()


async def _is_ready_when_it_times_out() -> None:
    ready = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(0):
        asyncio.get_running_loop().call_soon(ready.set_result, None)
        await ready
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("wait", "outcome"),
    [
        (_sleeps, "done"),
        (_waits_twice, "done"),
        (_times_out, "TimeoutError"),
        (_times_out_later, "TimeoutError"),
        (_swallows_its_timeout, "done"),
        (_is_ready_when_it_times_out, "TimeoutError"),
    ],
)
async def test_the_task_goes_on_with_what_waits_again(
    sleeper: Sleeper, wait: Callable[[], Awaitable[None]], outcome: str
) -> None:
    async def work() -> str:
        try:
            await wait()
        except TimeoutError as error:
            return type(error).__name__
        assert asyncio.current_task() is sleeper.task
        return "done"

    await sleeper.run(work())
    assert await sleeper.task == outcome
    assert not sleeper.task.cancelling()


async def _cleans_up(seen: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await _sleeps()
        seen.append("cleaned up")


async def _cleans_up_after_a_turn(seen: list[str]) -> None:
    await asyncio.sleep(0)
    await _cleans_up(seen)


@pytest.mark.parametrize("work", [_cleans_up, _cleans_up_after_a_turn])
@pytest.mark.parametrize("at_once", [True, False])
async def test_cancelling_the_task_reaches_it(
    sleeper: Sleeper, work: Callable[[list[str]], Coroutine[Any, Any, None]], at_once: bool
) -> None:
    seen: list[str] = []
    await sleeper.run(work(seen), cancelled=at_once)
    if not at_once:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sleeper.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper.task
    assert seen == (["cleaned up"] if work is _cleans_up or not at_once else [])


async def test_cancelling_the_task_cancels_what_is_waited_for(sleeper: Sleeper) -> None:
    seen: list[str] = []
    inner = asyncio.create_task(_cleans_up(seen))

    async def work() -> None:
        await inner

    await asyncio.sleep(0)
    await sleeper.run(work(), cancelled=True)
    with pytest.raises(asyncio.CancelledError):
        await sleeper.task
    assert inner.cancelled()
    assert seen == ["cleaned up"]


async def test_a_coroutine_may_cancel_its_own_task(sleeper: Sleeper) -> None:
    async def work() -> None:
        sleeper.task.cancel()
        await asyncio.Event().wait()

    await sleeper.run(work())
    with pytest.raises(asyncio.CancelledError):
        await sleeper.task


async def test_a_task_that_nothing_is_left_for_wakes(sleeper: Sleeper) -> None:
    sleeper.sleeps_on = False

    async def work() -> str:
        return "done"

    await sleeper.run(work())
    assert await sleeper.task is None
    assert sleeper.returned == ["done"]
