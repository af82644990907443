"""Running coroutines on the spot, in the name of a task that is asleep.

What eager tasks do for new ones from Python 3.12 on, for one that exists. Most coroutines wait
once at most: for a commit, say. That, too, needs no task. Only what waits again wakes the task,
which goes on with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")

Awaited: TypeAlias = asyncio.Future[Any] | None
"""What a coroutine waits for; None: just for its next turn."""


class Nap(Generic[T]):
    """The sleep of a task, in whose name coroutines are run meanwhile, one at a time.

    `sleeps_on` is told what a coroutine returned, and says whether the task has no reason to wake.
    """

    __slots__ = ("_awaited", "_coroutine", "_end", "_loop", "_sleeps_on", "_task")

    def __init__(self, task: asyncio.Task[Any], sleeps_on: Callable[[T], bool]) -> None:
        self._task = task
        self._sleeps_on = sleeps_on
        self._loop = task.get_loop()
        self._end: asyncio.Future[None] = self._loop.create_future()
        self._coroutine: Coroutine[Any, Any, T] | None = None
        """The one that waits for something."""
        self._awaited: Awaited = None

    # For the task.

    async def over(self) -> T | None:
        """Sleep; what the coroutine returned that the task had to go on with, if there was one."""
        try:
            await self._end
        except asyncio.CancelledError:
            if self._coroutine is None:
                raise
            return await self._cancelled(self._coroutine)
        if self._coroutine is None:
            return None
        return await _Rest(self._coroutine, self._awaited)

    async def _cancelled(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Go on as a task does that is cancelled: with what it waits for, unless that is there."""
        rest = _Rest(coroutine, self._awaited)
        if self._awaited is not None and self._awaited.cancel():
            return await rest
        return await rest.thrown(asyncio.CancelledError())

    # For callbacks.

    @property
    def undisturbed(self) -> bool:
        """Whether a coroutine can be run: the task sleeps, and none is under way."""
        return self._coroutine is None and not self._end.done()

    def wake(self) -> None:
        """Who has a coroutine under way is not woken before its end."""
        if self.undisturbed:
            self._end.set_result(None)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> None:
        if not self._advance(coroutine):
            return
        if self._awaited is None:
            self._hand_over()
        else:
            # Whoever waits for a future marks it so, and who sees to it takes the mark away.
            self._awaited._asyncio_future_blocking = False
            self._awaited.add_done_callback(self._go_on)

    def _go_on(self, _: asyncio.Future[Any]) -> None:
        coroutine = self._coroutine
        if coroutine is None or self._end.done():
            return  # the task was cancelled, and sees to it
        self._coroutine = None
        if self._advance(coroutine):
            self._hand_over()

    def _hand_over(self) -> None:
        if not self._end.done():  # else the coroutine has cancelled its own task
            self._end.set_result(None)

    def _advance(self, coroutine: Coroutine[Any, Any, T]) -> bool:
        """Whether it has to wait."""
        loop, task = self._loop, self._task
        # asyncio's hooks for whoever runs coroutines: what is run here may ask for its task.
        asyncio._enter_task(loop, task)
        try:
            self._awaited = coroutine.send(None)
        except StopIteration as ended:
            result: T = ended.value
        except BaseException as failure:  # noqa: BLE001  the task's to deal with
            if not self._end.done():
                self._end.set_exception(failure)
            return False
        else:
            self._coroutine = coroutine
            return True
        finally:
            asyncio._leave_task(loop, task)
        if not self._sleeps_on(result):
            self.wake()
        return False


class _Rest(Generic[T]):
    """What is left of a coroutine that waits for something, to be awaited by the task itself."""

    __slots__ = ("_awaited", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, T], awaited: Awaited) -> None:
        self._coroutine = coroutine
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        if self._awaited is not None:
            self._awaited._asyncio_future_blocking = True
        try:
            yield self._awaited
        except BaseException as thrown:  # noqa: BLE001  whatever it is, the coroutine's to handle
            return (yield from self.thrown(thrown).__await__())
        return (yield from self._coroutine.__await__())

    async def thrown(self, error: BaseException) -> T:
        """The rest, after the coroutine was told of an error."""
        try:
            awaited = self._coroutine.throw(error)
        except StopIteration as ended:
            result: T = ended.value
            return result
        return await _Rest(self._coroutine, awaited)
