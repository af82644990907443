"""One step of a plane with a virtual clock: its workers run, its time passes, nothing else moves.

The problem: an agent acts on a cluster, says "five seconds later", and must get the same state
for the same actions and the same seed, on any machine, while thousands of other planes are
stepped in the same process and requests are served in between.

A plane's workers are ordinary asyncio code in a loop of their own (`aio.stepped`), whose time
only this module moves. A step alternates two things until its end is reached: run everything that
is ready, and when nothing is, advance the time to the next timer. So a step of an hour in which
little happens takes milliseconds, and no result depends on how long anything takes.

Three details make it repeatable:

* The loop is run in slices of half a millisecond, one slice in each iteration of the server's
  loop, so that requests of others wait for one slice at most. A slice can end anywhere in a turn;
  the next one resumes that turn, so the order of the work never depends on the machine's speed.
* What a write changes reaches the workers between two turns (`feed`), never in the middle of one.
* A write that is on its way to disk takes real time. The step waits for it before it advances the
  virtual time, or the time of an event would depend on the disk.

A step "until idle" ends where no work is ready and the next is further away than QUIET seconds
from the last change. Renewed leases are neither work nor change: a cluster is never without them.
A pod that keeps crashing is idle once its back-off is longer than that. After LONGEST the step
ends in any case, and says that the plane is not idle.

Measured: before slices took turns, six planes that were stepped at once held up other requests
for 3 to 7 ms, now for 1 to 2 ms (decision 0012). Longer slices do not make steps faster (0008).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from kvestigate.cluster.workforce.plane_workers import PlaneWorkers

QUIET = 30.0
LONGEST = 3600.0
SLICE = 0.0005
"""Seconds of one slice: it ends after the first piece of work that ends later."""


class Slices:
    """Runs one slice in each iteration of the server's loop, first come, first served.

    However many planes have work, requests wait for one slice at most.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        """The server's: the caller of `add` may run in the loop of a plane's workers."""
        self._waiting: deque[Callable[[], None]] = deque()

    def add(self, work: Callable[[], None]) -> None:
        """Have `work` called after all that was added before, outside of any task."""
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        work = self._waiting.popleft()
        if self._waiting:
            self._loop.call_soon(self._next)
        work()


class Step:
    """Moves the time of one plane's workers by `seconds`, or until they are idle."""

    def __init__(self, workers: PlaneWorkers, seconds: float | None, slices: Slices) -> None:
        self._workers = workers
        self._slices = slices
        self._until_idle = seconds is None
        self._end = workers.loop.time() + (LONGEST if seconds is None else seconds)
        self.idle = False

    async def run(self) -> None:
        while not await self._run_slices():
            await self._workers.plane.settled()
        if not self._until_idle:
            self._workers.loop.advance(self._end)

    async def _run_slices(self) -> bool:
        """Run in slices until there is nothing to do; whether the step is over.

        If it is not, a write is on its way to disk.
        """
        over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def run() -> None:
            if over.cancelled():
                return  # the request for the step was cancelled
            try:
                result = self._run_slice()
            except BaseException as error:  # noqa: BLE001 - raised where the step is awaited
                over.set_exception(error)
            else:
                if result is None:
                    self._slices.add(run)
                else:
                    over.set_result(result)

        self._slices.add(run)
        return await over

    def _run_slice(self) -> bool | None:
        """One slice. True: the step is over; False: wait for a write; None: there is more to do."""
        workers, loop = self._workers, self._workers.loop
        stop = time.perf_counter() + SLICE
        with loop.entered():
            while time.perf_counter() < stop:
                if workers.turn(stop):
                    continue
                if workers.plane.tip is not workers.plane.state:
                    return False
                at = loop.next_timer()
                work = loop.next_work()
                self.idle = work is None or work > workers.busy_at + QUIET
                if at is None or at > self._end or (self._until_idle and self.idle):
                    return True
                loop.advance(at)
        return None
