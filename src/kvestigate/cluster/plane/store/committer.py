"""Group commit: decisions become durable together, in the order in which they were made.

A write is decided in memory first. The decision is visible at once to the writers that come after
it (they build on `Plane.tip`), but to nobody else: a reader or a watcher sees it only when the
backend has it on disk, because a change that a client has seen must survive a crash. So a decision
has two ends, and exactly one of them is called: `settle` (durable: show it) or `revert` (it never
will be: undo it for the writers too).

A sync to disk takes far longer than a decision, and takes no longer for many decisions than for
one. Hence the groups: everything that was decided in one turn of the event loop goes to the backend
as one commit, and everything that is decided while a commit is on its way waits in `_queue` and is
the next one. Under load groups grow by themselves; without load a write waits for nobody. After a
commit there is one `sleep(0)`: the clients just answered send their next writes in that turn, which
makes the next group larger.

What can go wrong, and what then:

- The backend fails (disk full): everything in the queue was decided on top of what failed, so all
  of it is reverted, newest first, and every writer gets StoreFailed.
- A shared backend (etcd) refuses single steps, because another server wrote first. Those are
  reverted, and so are later appends to the same planes. Other planes are not affected.
- A plane is deleted while writes to it wait: `abandon` takes them out, except those that the
  backend has in its hands already.
- A writer stops waiting: its write goes on. The future of `submit` is the writer's alone.

Cleaning (`Backend.tidy`) is done when nothing is waiting to be written, and at the latest after
`_COMMITS` commits, or a server that is always busy would never clean.

One task does all of this, in the loop that called `open`. Writers may run in other loops on the
same thread (stepped planes have their own, see `aio.stepped`), which stand still at times; a commit
must not wait for those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

from kvestigate.cluster.plane.store.errors import StoreError, StoreFailed
from kvestigate.cluster.plane.store.interface import NO_REFUSALS, Appended, Backend, Refusals, Step

_COMMITS = 64
"""Cleaning waits for a pause in the writing, but not for more than this many commits."""


class Decision(msgspec.Struct, frozen=True):
    """A step that the writers after it build upon, and that nobody else can see yet."""

    step: Step
    settle: Callable[[], None]
    """It is durable: show it."""
    revert: Callable[[], None]
    """It never will be: undo it for the writers too."""


_Refused: TypeAlias = tuple[Decision, asyncio.Future[None], StoreError]


class Committer:
    """Brings decisions to the backend in order; owns the one task that waits for it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._queue: list[tuple[Decision, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._under_way = 0
        """How much of the queue the backend has in its hands."""
        self._home: asyncio.AbstractEventLoop | None = None
        self._curious: list[asyncio.Future[None]] = []

    def open(self) -> None:
        """The loop that runs now is the one that waits for the backend.

        Those who decide may run in others on the same thread, which stand still now and then.
        """
        self._home = asyncio.get_running_loop()

    def submit(self, decision: Decision) -> asyncio.Future[None] | None:
        """None: it is settled already; else the future says when, or raises StoreFailed.

        It is the caller's alone: who cancels it stops waiting, not the write.
        """
        if self._closing:
            decision.revert()
            raise StoreFailed("the store is closed")
        if not self._backend.durable:
            decision.settle()
            return None
        self._start()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((decision, done))
        return done

    async def settled(self, decision: Decision) -> None:
        """Submit and wait. Who stops waiting does not stop the write."""
        done = self.submit(decision)
        if done is not None:
            await done

    def note(self, step: Step) -> None:
        """Pass on a step that changes nothing anybody can see, and that nobody waits for."""
        if not self._closing:
            self.submit(Decision(step, _nothing, _nothing))

    def newer(self, plane: str, revision: int) -> Awaitable[bool] | None:
        """Has another server written to the plane since? It has been reported, then."""
        return self._backend.newer(plane, revision)

    def abandon(self, plane: str, error: StoreError) -> None:
        """The plane is gone: what was to be appended to it and is not under way never will be."""
        _give_up(self._appends_to({plane: error}, self._under_way))

    async def progress(self) -> None:
        """Wait until something that was decided is settled, if anything is not."""
        if self._queue:
            settled = asyncio.get_running_loop().create_future()
            self._curious.append(settled)
            await settled

    async def so_far(self) -> None:
        """Wait until nothing of what is decided now is still to be settled or given up."""
        if self._queue:
            last = self._queue[-1]
            while any(each is last for each in self._queue):
                await self.progress()

    async def idle(self) -> None:
        """Wait until everything decided is durable and everything to clean is clean."""
        self._start()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Settle what was decided; take nothing more."""
        self._closing = True
        if self._queue:
            self._start()
        if self._task is not None:
            await self._task

    def _start(self) -> None:
        """Have the task run: it commits together what was decided until its turn comes."""
        if self._task is None and self._home is not None:
            self._task = self._home.create_task(self._run())

    async def _run(self) -> None:
        """Commit until there is nothing left to write and nothing left to clean."""
        commits = 0
        try:
            while True:
                if self._queue and commits < _COMMITS:
                    commits += 1
                    await self._commit()
                    # The writers just acknowledged come back in this turn; let them form a group.
                    await asyncio.sleep(0)
                elif not (self._backend.untidy and await self._tidy()) and not self._queue:
                    return
                else:
                    commits = 0
        finally:
            self._task = None

    async def _commit(self) -> None:
        size = self._under_way = len(self._queue)
        try:
            refusals = await self._backend.commit([decision.step for decision, _ in self._queue])
        except StoreFailed as error:
            self._fail(error)
        else:
            self._settle(size, refusals)
        self._under_way = 0
        curious, self._curious = self._curious, []
        for waiting in curious:
            if not waiting.done():
                waiting.set_result(None)

    async def _tidy(self) -> bool:
        """Clean a bit; whether there is more to clean."""
        if self._closing:
            return False
        try:
            return await self._backend.tidy()
        except StoreFailed:
            return False  # it is tried again after the next write, which reports the failure

    def _settle(self, size: int, refusals: Refusals = NO_REFUSALS) -> None:
        settled, self._queue = self._queue[:size], self._queue[size:]
        refused: list[_Refused] = []
        for place, (decision, done) in enumerate(settled):
            if place in refusals:
                refused.append((decision, done, refusals[place]))
                continue
            decision.settle()
            if not done.done():
                done.set_result(None)
        if refused:
            # What was decided on top of appends that did not happen cannot happen either.
            reasons = {
                decision.step.plane: error
                for decision, _, error in refused
                if isinstance(decision.step, Appended)
            }
            _give_up(refused + self._appends_to(reasons, 0))

    def _appends_to(self, reasons: Mapping[str, StoreError], start: int) -> list[_Refused]:
        """Take the appends to some planes out of the queue, from `start` on."""
        kept = self._queue[:start]
        taken: list[_Refused] = []
        for decision, done in self._queue[start:]:
            step = decision.step
            if isinstance(step, Appended) and step.plane in reasons:
                taken.append((decision, done, reasons[step.plane]))
            else:
                kept.append((decision, done))
        self._queue = kept
        return taken

    def _fail(self, error: StoreFailed) -> None:
        """What is queued was decided on top of what failed, so all of it goes, newest first."""
        failed, self._queue = self._queue, []
        _give_up([(*each, StoreFailed(error.message, hint=error.hint)) for each in failed])


def _give_up(refused: list[_Refused]) -> None:
    for decision, _, _ in reversed(refused):
        decision.revert()
    for _, done, error in refused:
        if not done.done():
            done.set_exception(error)
            done.exception()  # a step that nobody waits for must not warn


def _nothing() -> None:
    pass
