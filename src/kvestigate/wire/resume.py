"""Running a coroutine on the spot, in the name of a task that goes on with it if it has to wait.

What eager tasks do for new ones from Python 3.12 on, for one that exists and is asleep.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """A coroutine that waits for something for the first time; awaiting this goes on with it."""

    __slots__ = ("_awaited", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, T], awaited: object) -> None:
        self._coroutine = coroutine
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        try:
            yield self._awaited
        except BaseException as thrown:  # noqa: BLE001  whatever it is, the coroutine's to handle
            return (yield from self._throw(thrown))
        return (yield from self._coroutine.__await__())

    @types.coroutine
    def cancelled(self) -> Generator[Any, Any, T]:
        """Go on with it by telling it that its task was cancelled."""
        return (yield from self._throw(asyncio.CancelledError()))

    def _throw(self, thrown: BaseException) -> Generator[Any, Any, T]:
        try:
            awaited = self._coroutine.throw(thrown)
        except StopIteration as ended:
            result: T = ended.value
            return result
        return (yield from Begun(self._coroutine, awaited).__await__())


def begin(task: asyncio.Task[Any], coroutine: Coroutine[Any, Any, T]) -> T | Begun[T]:
    """What the coroutine returns if it gets there without waiting. Not to be called by a task."""
    loop = task.get_loop()
    # asyncio's hooks for whoever runs coroutines: what is begun here may ask for its task.
    asyncio._enter_task(loop, task)
    try:
        return Begun(coroutine, coroutine.send(None))
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        asyncio._leave_task(loop, task)


async def go_on(given: asyncio.Future[Begun[T] | None]) -> T | None:
    """Wait to be given what was begun, and end it; None if there is nothing left of it to do."""
    try:
        begun = await given
    except asyncio.CancelledError:
        begun = None if given.cancelled() else given.result()
        if begun is None:
            raise
        # Between being given it and going on with it: a time limit that it has set, for one.
        return await begun.cancelled()
    return None if begun is None else await begun
