"""One crew: the controllers, the scheduler and the nodes of one plane, in a loop of their own.

Their loop is run in slices by whoever keeps the crew, on the wall's time or on virtual time.
What they have to remember is in the plane; a crew that is dropped can be made again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random

from kvestigate.aio.stepped import LoopClock, SteppedLoop
from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.controllers.runtime import Factory, Manager
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.scheduler.runtime import Scheduler
from kvestigate.cluster.workforce.door import Door
from kvestigate.cluster.workforce.feed import FedApi, Feed
from kvestigate.cluster.workforce.nodes import Nodes

_log = logging.getLogger(__name__)

CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
KUBELETS = "system:nodes"

_HOST = "crew"
"""Where they say they run: not on this machine, as a run can be repeated on another."""

Doors = Callable[[str, str], Door]
"""(plane, user) -> the way to that plane's API as that user."""


@dataclass(frozen=True, slots=True)
class CrewShape:
    """What every crew is made of."""

    nodes: int = 1
    """Simulated nodes of a plane that has none of its own."""
    controllers: Mapping[str, Factory] = field(default_factory=lambda: CONTROLLERS)
    workers: int = 4
    """Objects that one controller works on at a time."""


class Crew:
    """Works on one plane while it is run."""

    def __init__(
        self,
        plane: Plane,
        shape: CrewShape,
        doors: Doors,
        *,
        now: float,
        seed: int | None = None,
        woken: Callable[[], None] = lambda: None,
    ) -> None:
        """`seed` makes its choices repeatable."""
        self.plane = plane
        self.loop = SteppedLoop(now, woken)
        self.clock = LoopClock(self.loop)
        self.busy_at = now
        """When something last changed in the plane."""
        self._shape = shape
        self._doors = doors
        self._random = Random(seed)
        self._feed = Feed(plane)
        self._apis: list[FedApi] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def failed(self) -> bool:
        """Whether it broke down, which it told in the log."""
        return self._task is not None and self._task.done()

    def turn(self, stop: float) -> bool:
        """Do what there is to do without time passing, once around; whether there was any.

        A turn that `time.perf_counter` says has to `stop` is gone on with the next time.
        """
        if self._task is None:
            self._task = self.loop.create_task(self._work(), name=f"crew of {self.plane.name}")
        if self.loop.midway:
            return bool(self.loop.turn(stop))
        changed = self._feed.catch_up()
        if changed:
            self.busy_at = self.loop.time()
        if self.loop.turn(stop) or changed:
            return True
        # A write on its way to disk will be work for those who come first.
        return self.plane.tip is self.plane.state and self.loop.turn_idle()

    def end(self) -> None:
        """Stop at once: what is not in the plane by now will not get there."""
        for api in self._apis:
            self.loop.create_task(api.aclose())
        with self.loop.entered():
            self.loop.turn()
        self.loop.end()

    async def _work(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                # Nodes first: they renew their leases before anybody finds them lapsed.
                await stack.enter_async_context(
                    Nodes(self._api(KUBELETS), self.clock, self._shape.nodes)
                )
                await stack.enter_async_context(
                    Scheduler(
                        self._api(SCHEDULER), clock=self.clock, random=self._random, host=_HOST
                    )
                )
                await stack.enter_async_context(
                    Manager(
                        self._api(CONTROLLER_MANAGER),
                        self._shape.controllers,
                        clock=self.clock,
                        workers=self._shape.workers,
                        pace=self.loop.call_when_idle,
                    )
                )
                await self.loop.create_future()
        except Exception:  # noqa: BLE001 - the top level of this loop: one crew, not all, breaks down
            _log.exception("the crew of plane %s broke down", self.plane.name)

    def _api(self, user: str) -> FedApi:
        api = FedApi(self._doors(self.plane.name, user), self._feed)
        self._apis.append(api)
        return api
