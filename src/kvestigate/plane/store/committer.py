"""Group commit: what is decided while one commit is on its way to disk forms the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kvestigate.plane.store.errors import StoreFailed
from kvestigate.plane.store.interface import Backend, Step

_COMMITS = 64
"""Cleaning waits for a pause in the writing, but not for more than this many commits."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A step that the writers after it build upon, and that nobody else can see yet."""

    step: Step
    settle: Callable[[], None]
    """It is durable: show it."""
    revert: Callable[[], None]
    """It never will be: undo it for the writers too."""


class Committer:
    """Brings decisions to the backend in order; owns the one task that waits for it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._queue: list[tuple[Decision, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def submit(self, decision: Decision) -> asyncio.Future[None] | None:
        """None: it is settled already; else the future says when, or raises StoreFailed."""
        if self._closing:
            decision.revert()
            raise StoreFailed("the store is closed")
        if self._task is not None:
            return self._enqueue(decision)
        commit = self._backend.commit([decision.step])
        if commit is None:
            decision.settle()
            return None
        done = self._enqueue(decision)
        self._task = asyncio.get_running_loop().create_task(self._run(commit))
        return done

    async def settled(self, decision: Decision) -> None:
        """Submit and wait. Who stops waiting does not stop the write."""
        done = self.submit(decision)
        if done is not None:
            await asyncio.shield(done)

    def note(self, step: Step) -> None:
        """Pass on a step that changes nothing anybody can see, and that nobody waits for."""
        if not self._closing:
            self.submit(Decision(step, _nothing, _nothing))

    def last(self) -> asyncio.Future[None] | None:
        """The newest decision that is not settled."""
        return self._queue[-1][1] if self._queue else None

    async def idle(self) -> None:
        """Wait until everything decided is durable and everything to clean is clean."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Settle what was decided; take nothing more."""
        self._closing = True
        if self._task is not None:
            await self._task

    def _enqueue(self, decision: Decision) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((decision, done))
        return done

    async def _run(self, commit: Awaitable[None] | None) -> None:
        """Commit until there is nothing left to write and nothing left to clean."""
        size, commits = 1, 0
        try:
            while True:
                if commit is not None:
                    commits += 1
                    if await self._succeeded(commit):
                        self._settle(size)
                # The writers just acknowledged come back in this turn; let them form a group.
                await asyncio.sleep(0)
                size = len(self._queue)
                if size and commits < _COMMITS:
                    commit = self._backend.commit([decision.step for decision, _ in self._queue])
                    continue
                commit, commits = None, 0
                if (self._closing and not size) or not await self._more_after_tidying():
                    return
        finally:
            self._task = None

    async def _succeeded(self, commit: Awaitable[None]) -> bool:
        try:
            await commit
        except StoreFailed as error:
            self._fail(error)
            return False
        return True

    async def _more_after_tidying(self) -> bool:
        try:
            more = await self._backend.tidy()
        except StoreFailed:
            more = False  # it is tried again after the next write, which reports the failure
        return more or bool(self._queue)

    def _settle(self, size: int) -> None:
        settled, self._queue = self._queue[:size], self._queue[size:]
        for decision, done in settled:
            decision.settle()
            if not done.done():
                done.set_result(None)

    def _fail(self, error: StoreFailed) -> None:
        """What is queued was decided on top of what failed, so all of it goes, newest first."""
        failed, self._queue = self._queue, []
        for decision, _ in reversed(failed):
            decision.revert()
        for _, done in failed:
            if not done.done():
                done.set_exception(StoreFailed(error.message, hint=error.hint))
                done.exception()  # a step that nobody waits for must not warn


def _nothing() -> None:
    pass
