"""Named tasks with one owner and a readiness handshake.

`start` returns when the task says it is ready, with what it has to tell (a port, a cache);
nothing ever polls. The failure of one task ends them all and leaves the block, named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Ready(Generic[T]):
    """The callback by which a task says, once, that it is ready."""

    def __init__(self) -> None:
        self.told: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def __call__(self, value: T) -> None:
        if not self.told.done():
            self.told.set_result(value)


class Supervisor:
    """An async context manager that owns its tasks: leaving the block ends them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._group = asyncio.TaskGroup()
        self._tasks: dict[asyncio.Task[Any], None] = {}
        # Not a set: they are cancelled in the order in which they came.

    async def __aenter__(self) -> Supervisor:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(kind, error, traceback)

    def spawn(self, name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` until it ends or the block is left."""
        task = self._group.create_task(work, name=f"{self.name}/{name}")
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    async def start(self, name: str, work: Callable[[Ready[T]], Awaitable[None]]) -> T:
        """Run `work` and wait until it is ready; its early end is the caller's failure."""
        ready: Ready[T] = Ready()

        async def run() -> None:
            await work(ready)

        task = self.spawn(name, run())
        either: set[asyncio.Future[Any]] = {task, ready.told}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if ready.told.done():
            return ready.told.result()
        await task  # raises what the task raised
        raise RuntimeError(f"{task.get_name()} ended before it was ready")
