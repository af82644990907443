"""Keeps the crews of a server: makes one where there is work, lets it go where there is none.

On the wall's time a crew begins with the first change of its plane beyond what every plane
starts with, and ends when the plane has been quiet for a while; if something is due later, a
CronJob say, one timer remembers the plane. A plane with a virtual clock keeps its crew from its
first step on, as what a crew remembers beyond the plane is part of what a run repeats.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from kvestigate import errors
from kvestigate.aio.clock import WALL, Clock, Timer
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.tenancy import timing
from kvestigate.cluster.plane.tenancy.planes import Planes
from kvestigate.cluster.plane.tenancy.stepping import MOST_SECONDS, StepResult
from kvestigate.cluster.plane.tenancy.timing import Timing, timing_of
from kvestigate.cluster.workforce.crew import Crew, CrewShape, Doors
from kvestigate.cluster.workforce.step import Step
from kvestigate.cluster.workforce.turns import SLICE, Turns

ACTOR = "system:clock"


class Crews:
    """The workforce of a server. A context: leaving it ends all crews."""

    def __init__(
        self,
        planes: Planes,
        doors: Doors,
        shape: CrewShape,
        *,
        clock: Clock = WALL,
        on_wall_clock: bool = True,
        quiet: float = 2.0,
    ) -> None:
        """`on_wall_clock`: whether planes without a virtual clock have crews too.

        `quiet` is how many seconds a crew waits for more before it goes.
        """
        self._planes = planes
        self._doors = doors
        self._shape = shape
        self._clock = clock
        self._on_wall_clock = on_wall_clock
        self._quiet = quiet
        self._virtual: dict[str, Crew] = {}
        self._steps: dict[str, asyncio.Lock] = {}
        self._crews: dict[str, Crew] = {}
        self._alarms: dict[str, Timer] = {}
        self._waiting: deque[str] = deque()
        self._queued: set[str] = set()
        self._current = ""
        """The plane whose crew is at work right now: it hears of its own writes itself."""
        self._patient: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> Crews:
        self._loop = asyncio.get_running_loop()
        self._turns = Turns(self._loop)
        self._planes.workforce = self
        if self._on_wall_clock:
            self._planes.store.listen(self._changed)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._planes.store.listen(None)
        for name in [*self._crews, *self._alarms, *self._virtual]:
            self.dismiss(name)

    def __len__(self) -> int:
        """How many crews there are right now."""
        return len(self._crews) + len(self._virtual)

    async def rested(self) -> None:
        """Wait until no crew on the wall's time has anything to do right now."""
        while self._waiting:
            rested = self._loop.create_future()
            self._patient.append(rested)
            await rested

    # -- what the plane asks for -------------------------------------------------------------

    def adopt(self, plane: Plane) -> None:
        name = plane.name
        if self._on_wall_clock and timing_of(plane.state) is None:
            if name not in self._crews:
                self._crews[name] = self._new(
                    plane, self._clock.now(), None, lambda: self._queue(name)
                )
            self._queue(name)

    def dismiss(self, name: str) -> None:
        for crews in (self._crews, self._virtual):
            crew = crews.pop(name, None)
            if crew is not None:
                crew.end()
        self._steps.pop(name, None)
        self._silence(name)

    async def step(self, plane: Plane, *, seconds: float | None = None) -> StepResult:
        if seconds is not None and not 0 <= seconds <= MOST_SECONDS:
            raise errors.BadRequest(f"seconds: {seconds:g} is not between 0 and {MOST_SECONDS:g}")
        async with self._steps.setdefault(plane.name, asyncio.Lock()):
            before = timing_of(plane.tip)
            if before is None:
                raise errors.BadRequest(
                    f'plane "{plane.name}" cannot be stepped: it runs on the wall clock'
                )
            return await self._step(plane, before, seconds)

    async def _step(self, plane: Plane, before: Timing, seconds: float | None) -> StepResult:
        revision = plane.state.revision
        crew = self._virtual_crew(plane, before)
        step = Step(crew, seconds, self._turns)
        self._planes.times.moving[plane.name] = crew.clock
        try:
            await step.run()
        finally:
            del self._planes.times.moving[plane.name]
        now = crew.loop.time()
        if now != before.now:
            await plane.write(timing.put(plane.tip, replace(before, now=now)), ACTOR)
        reached = plane.state.revision
        return StepResult(now, reached, reached - revision, step.idle)

    def _virtual_crew(self, plane: Plane, timing: Timing) -> Crew:
        crew = self._virtual.get(plane.name)
        if crew is not None and (crew.plane is not plane or crew.loop.time() != timing.now):
            self.dismiss(plane.name)  # the plane was put back to where this crew has never been
            crew = None
        if crew is None:
            crew = self._new(plane, timing.now, timing.seed, lambda: None)
            self._virtual[plane.name] = crew
        return crew

    def _new(self, plane: Plane, now: float, seed: int | None, woken: Callable[[], None]) -> Crew:
        return Crew(plane, self._shape, self._doors, now=now, seed=seed, woken=woken)

    # -- crews on the wall's time ------------------------------------------------------------

    def _queue(self, name: str) -> None:
        if name in self._queued:
            return
        self._queued.add(name)
        self._waiting.append(name)
        self._turns.take(self._work)

    def _work(self) -> None:
        """One slice of the crew that has waited longest."""
        name = self._waiting.popleft()
        self._queued.discard(name)
        crew = self._crews.get(name)
        if crew is not None:
            self._serve(name, crew)
        if not self._waiting:
            patient, self._patient = self._patient, []
            for rested in patient:
                rested.set_result(None)

    def _serve(self, name: str, crew: Crew) -> None:
        self._current = name
        try:
            more = _slice(crew, self._clock.now())
        finally:
            self._current = ""
        if more:
            self._queue(name)
        elif crew.failed:
            self.dismiss(name)
        else:
            self._rest(name, crew)

    def _rest(self, name: str, crew: Crew) -> None:
        """Nothing to do right now: come back when there is, or go."""
        plane, now = crew.plane, crew.loop.time()
        work, leaves = crew.loop.next_work(), crew.busy_at + self._quiet
        wake = crew.loop.next_timer() or leaves
        if now < leaves:
            self._alarm(name, min(wake, leaves) - now, lambda: self._queue(name))
        elif plane.tip is not plane.state or (work is not None and work <= now + self._quiet):
            self._alarm(name, max(wake - now, 0.0), lambda: self._queue(name))
        else:
            crew.end()
            del self._crews[name]
            self._silence(name)
            if work is not None:
                self._alarm(name, work - now, lambda: self._revive(plane))

    def _changed(self, name: str) -> None:
        if name in self._crews:
            if name != self._current:
                self._queue(name)
        elif (plane := self._planes.store.loaded(name)) is not None:
            self.adopt(plane)

    def _revive(self, plane: Plane) -> None:
        self._alarms.pop(plane.name, None)
        self.adopt(plane)

    def _alarm(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        self._silence(name)
        self._alarms[name] = self._clock.call_later(seconds, call)

    def _silence(self, name: str) -> None:
        alarm = self._alarms.pop(name, None)
        if alarm is not None:
            alarm.cancel()


def _slice(crew: Crew, now: float) -> bool:
    """Work for a moment; whether there is more to do."""
    stop = time.perf_counter() + SLICE
    crew.loop.advance(now)
    with crew.loop.entered():
        while crew.turn(stop):
            if time.perf_counter() >= stop:
                return True
    return False
