"""Running a coroutine on the spot, in the name of a task that goes on with it if it has to wait.

What eager tasks do for new ones from Python 3.12 on, for one that exists and is asleep.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from contextlib import suppress
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

    async def abandon(self) -> None:
        """Cancel it, and wait for its end."""
        with suppress(asyncio.CancelledError):
            await self._throw(asyncio.CancelledError())

    @types.coroutine
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
