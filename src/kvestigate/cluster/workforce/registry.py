"""Starts the workers of a plane when there is work, and stops them when there is none.

On the wall clock, the workers of a plane start with its first change beyond what every plane
starts with, and stop when the plane has been quiet for a while; if something is due later, such
as a CronJob, one timer remembers the plane. A plane with a virtual clock keeps its workers from
its first step on, as what they remember beyond the plane is part of what a run repeats.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from msgspec.structs import replace

from kvestigate import errors
from kvestigate.aio.clock import WALL, Clock, Timer
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.front.serving import StartWorkers
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.tenancy import timing
from kvestigate.cluster.plane.tenancy.planes import Planes
from kvestigate.cluster.plane.tenancy.stepping import MOST_SECONDS, StepResult
from kvestigate.cluster.plane.tenancy.timing import Timing, timing_of
from kvestigate.cluster.workforce.direct import DirectTransport
from kvestigate.cluster.workforce.kubelets import SimulatedKubelets
from kvestigate.cluster.workforce.plane_workers import Connect, PlaneWorkers, WorkerOptions
from kvestigate.cluster.workforce.step import SLICE, Slices, Step
from kvestigate.http.certificates import CertificateAuthority

ACTOR = "system:clock"


class WorkerRegistry:
    """The workers of all planes of a server. A context manager: leaving it stops all workers."""

    def __init__(
        self,
        planes: Planes,
        connect: Connect,
        options: WorkerOptions,
        *,
        clock: Clock = WALL,
        on_wall_clock: bool = True,
        quiet: float = 2.0,
    ) -> None:
        """`on_wall_clock`: whether planes without a virtual clock have workers too.

        `quiet` is how many seconds after the last change the workers of a plane stop.
        """
        self._planes = planes
        self._connect = connect
        self._options = options
        self._clock = clock
        self._on_wall_clock = on_wall_clock
        self._quiet = quiet
        self._virtual: dict[str, PlaneWorkers] = {}
        self._steps: dict[str, asyncio.Lock] = {}
        self._on_wall: dict[str, PlaneWorkers] = {}
        self._alarms: dict[str, Timer] = {}
        self._waiting: deque[str] = deque()
        self._queued: set[str] = set()
        self._current = ""
        """The plane whose workers run right now: their feed finds their own writes."""
        self._waiters: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> WorkerRegistry:
        self._loop = asyncio.get_running_loop()
        self._slices = Slices(self._loop)
        self._planes.workforce = self
        if self._on_wall_clock:
            self._planes.store.listen(self._changed)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._planes.store.listen(None)
        for name in [*self._on_wall, *self._alarms, *self._virtual]:
            self.dismiss(name)

    def __len__(self) -> int:
        """How many planes have workers right now."""
        return len(self._on_wall) + len(self._virtual)

    async def rested(self) -> None:
        """Wait until no workers on the wall clock have anything to do right now."""
        while self._waiting:
            rested = self._loop.create_future()
            self._waiters.append(rested)
            await rested

    # -- what the plane asks for -------------------------------------------------------------

    def adopt(self, plane: Plane) -> None:
        name = plane.name
        if self._on_wall_clock and timing_of(plane.state) is None:
            if name not in self._on_wall:
                self._on_wall[name] = self._new(
                    plane, self._clock.now(), None, lambda: self._queue(name)
                )
            self._queue(name)

    def dismiss(self, name: str) -> None:
        for running in (self._on_wall, self._virtual):
            workers = running.pop(name, None)
            if workers is not None:
                workers.end()
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
        workers = self._virtual_workers(plane, before)
        step = Step(workers, seconds, self._slices)
        self._planes.times.moving[plane.name] = workers.clock
        try:
            await step.run()
        finally:
            del self._planes.times.moving[plane.name]
        now = workers.loop.time()
        if now != before.now:
            await plane.write(timing.put(plane.tip, replace(before, now=now)), ACTOR, before.now)
        reached = plane.state.revision
        return StepResult(now, reached, reached - revision, step.idle)

    def _virtual_workers(self, plane: Plane, timing: Timing) -> PlaneWorkers:
        workers = self._virtual.get(plane.name)
        if workers is not None and (
            workers.plane is not plane or workers.loop.time() != timing.now
        ):
            self.dismiss(
                plane.name
            )  # the plane was restored to a time where these workers never were
            workers = None
        if workers is None:
            workers = self._new(plane, timing.now, timing.seed, lambda: None)
            self._virtual[plane.name] = workers
        return workers

    def _new(
        self, plane: Plane, now: float, seed: int | None, woken: Callable[[], None]
    ) -> PlaneWorkers:
        return PlaneWorkers(plane, self._options, self._connect, now=now, seed=seed, woken=woken)

    # -- workers on the wall clock ------------------------------------------------------------

    def _queue(self, name: str) -> None:
        if name in self._queued:
            return
        self._queued.add(name)
        self._waiting.append(name)
        self._slices.add(self._work)

    def _work(self) -> None:
        """One slice for the plane that has waited longest."""
        name = self._waiting.popleft()
        self._queued.discard(name)
        workers = self._on_wall.get(name)
        if workers is not None:
            self._serve(name, workers)
        if not self._waiting:
            waiters, self._waiters = self._waiters, []
            for rested in waiters:
                rested.set_result(None)

    def _serve(self, name: str, workers: PlaneWorkers) -> None:
        self._current = name
        try:
            more = _slice(workers, self._clock.now())
        finally:
            self._current = ""
        if more:
            self._queue(name)
        elif workers.failed:
            self.dismiss(name)
        else:
            self._rest(name, workers)

    def _rest(self, name: str, workers: PlaneWorkers) -> None:
        """Nothing to do right now: come back when there is, or go."""
        plane, now = workers.plane, workers.loop.time()
        work, leaves = workers.loop.next_work(), workers.busy_at + self._quiet
        wake = workers.loop.next_timer() or leaves
        if now < leaves:
            self._alarm(name, min(wake, leaves) - now, lambda: self._queue(name))
        elif plane.tip is not plane.state or (work is not None and work <= now + self._quiet):
            self._alarm(name, max(wake - now, 0.0), lambda: self._queue(name))
        else:
            workers.end()
            del self._on_wall[name]
            self._silence(name)
            if work is not None:
                self._alarm(name, work - now, lambda: self._revive(plane))

    def _changed(self, name: str) -> None:
        if name in self._on_wall:
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


def _slice(workers: PlaneWorkers, now: float) -> bool:
    """Work for a moment; whether there is more to do."""
    stop = time.perf_counter() + SLICE
    workers.loop.advance(now)
    with workers.loop.entered():
        while workers.turn(stop):
            if time.perf_counter() >= stop:
                return True
    return False


def start_workers(*, controllers: bool, nodes: int) -> StartWorkers:
    """Workers for planes with a virtual clock; with `controllers`, for all other planes too."""

    @asynccontextmanager
    async def _workforce(
        registry: WorkerRegistry, kubelets: SimulatedKubelets
    ) -> AsyncIterator[WorkerRegistry]:
        async with registry, kubelets:
            yield registry

    def start(
        api: ApiServer, authority: CertificateAuthority
    ) -> AbstractAsyncContextManager[WorkerRegistry]:
        connect = partial(DirectTransport, api)
        options = WorkerOptions(nodes=nodes, authority=authority)
        registry = WorkerRegistry(api.planes, connect, options, on_wall_clock=controllers)
        return _workforce(registry, SimulatedKubelets(api.planes, api.backends, connect))

    return start
