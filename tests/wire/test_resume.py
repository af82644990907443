"""A coroutine begun outside of its task is, to itself, run by that task from the start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from kvestigate.wire.resume import Begun, begin, go_on


class Sleeper:
    """A task that sleeps until it has something to go on with."""

    def __init__(self) -> None:
        self._given: asyncio.Future[Begun[Any] | None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(go_on(self._given))

    async def start(self, coroutine: Any, *, cancelled: bool = False) -> Any:
        """What `begin` returns, called as a callback of the loop; the task goes on with it."""
        loop = asyncio.get_running_loop()
        outcome = loop.create_future()

        def call() -> None:
            try:
                begun = begin(self.task, coroutine)
            except Exception as failure:  # noqa: BLE001 - handed on
                outcome.set_exception(failure)
                return
            self._given.set_result(begun if isinstance(begun, Begun) else None)
            if cancelled:
                self.task.cancel()
            outcome.set_result(begun)

        loop.call_soon(call)
        return await outcome


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

    assert await sleeper.start(work()) is sleeper.task


async def test_a_failure_is_the_callers(sleeper: Sleeper) -> None:
    async def work() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        await sleeper.start(work())


async def _sleeps() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def _times_out() -> None:
    async with asyncio.timeout(0):  # before the task gets to go on
        await asyncio.Event().wait()


async def _times_out_later() -> None:
    async with asyncio.timeout(0.001):
        await asyncio.Event().wait()


async def _swallows_its_timeout() -> None:
    try:
        await _times_out()
    except TimeoutError:
        await _sleeps()


@pytest.mark.parametrize(
    ("wait", "outcome"),
    [
        (_sleeps, "done"),
        (_times_out, "TimeoutError"),
        (_times_out_later, "TimeoutError"),
        (_swallows_its_timeout, "done"),
    ],
)
async def test_what_waits_is_gone_on_with(
    sleeper: Sleeper, wait: Callable[[], Awaitable[None]], outcome: str
) -> None:
    async def work() -> str:
        try:
            await wait()
        except TimeoutError as error:
            return type(error).__name__
        assert asyncio.current_task() is sleeper.task
        return "done"

    assert isinstance(await sleeper.start(work()), Begun)
    assert await sleeper.task == outcome


async def _cleans_up(seen: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await _sleeps()
        seen.append("cleaned up")


@pytest.mark.parametrize("at_once", [True, False])
async def test_cancelling_the_task_reaches_it(sleeper: Sleeper, at_once: bool) -> None:
    seen: list[str] = []
    await sleeper.start(_cleans_up(seen), cancelled=at_once)
    if not at_once:
        await asyncio.sleep(0)
        sleeper.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper.task
    assert seen == ["cleaned up"]


async def test_a_task_with_nothing_to_go_on_with_goes_on(sleeper: Sleeper) -> None:
    async def work() -> str:
        return "done"

    assert await sleeper.start(work()) == "done"
    assert await sleeper.task is None
