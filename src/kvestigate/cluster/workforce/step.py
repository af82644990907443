"""One step of a plane with a virtual clock: its crew works, its time passes, nothing else moves.

A step that runs until the plane is idle ends where no work is at hand and the next is further
away than QUIET seconds from the last change; signs of life (leases) are neither work nor
change. A pod that keeps crashing is idle once its back-off is longer than that; and after
LONGEST the step ends in any case, and says that the plane is not idle.
"""

from __future__ import annotations

import asyncio
import time

from kvestigate.cluster.workforce.crew import Crew
from kvestigate.cluster.workforce.turns import SLICE, Turns

QUIET = 30.0
LONGEST = 3600.0


class Step:
    """Moves one crew's loop until `seconds` have passed, or until it is idle."""

    def __init__(self, crew: Crew, seconds: float | None, turns: Turns) -> None:
        self._crew = crew
        self._turns = turns
        self._until_idle = seconds is None
        self._end = crew.loop.time() + (LONGEST if seconds is None else seconds)
        self.idle = False

    async def run(self) -> None:
        while not await self._stretch():
            # A write that is on its way to disk is waited for in real time.
            await self._crew.plane.settled()
        if not self._until_idle:
            self._crew.loop.advance(self._end)

    async def _stretch(self) -> bool:
        """Run in moments, outside of any task of the outer loop, until there is nothing to do.

        Whether the step is over; else a write is waited for.
        """
        over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def run() -> None:
            if over.cancelled():
                return  # who asked for the step has gone
            try:
                result = self._move()
            except BaseException as error:  # noqa: BLE001 - handed on to who waits for the step
                over.set_exception(error)
            else:
                if result is None:
                    self._turns.take(run)
                else:
                    over.set_result(result)

        self._turns.take(run)
        return await over

    def _move(self) -> bool | None:
        """Run for a moment; None: there is more to do."""
        crew, loop = self._crew, self._crew.loop
        stop = time.perf_counter() + SLICE
        with loop.entered():
            while time.perf_counter() < stop:
                if crew.turn(stop):
                    continue
                if crew.plane.tip is not crew.plane.state:
                    return False
                at = loop.next_timer()
                work = loop.next_work()
                self.idle = work is None or work > crew.busy_at + QUIET
                if at is None or at > self._end or (self._until_idle and self.idle):
                    return True
                loop.advance(at)
        return None
