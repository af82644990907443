"""The controllers, the scheduler and the simulated nodes of one plane, in a loop of their own.

The registry runs their loop in slices, on the wall clock or on virtual time. All that the workers
have to remember is in the plane; workers that were stopped can be started again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random

from kvestigate.aio.stepped import LoopClock, SteppedLoop
from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.controllers.runtime import Factory, Manager
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.scheduler.runtime import Scheduler
from kvestigate.cluster.workforce.direct import DirectTransport
from kvestigate.cluster.workforce.feed import FedApi, Feed
from kvestigate.cluster.workforce.identities import (
    KUBELETS,
    MANAGER,
    SCHEDULER,
    Identity,
    controller,
    kubelet,
)
from kvestigate.cluster.workforce.nodes import Nodes
from kvestigate.cluster.workforce.signers import SIGNER, signing
from kvestigate.http.certificates import CertificateAuthority

_log = logging.getLogger(__name__)

Connect = Callable[[str, Identity], DirectTransport]
"""(plane, identity) -> the transport to that plane's API as that identity."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What the workers of every plane are."""

    nodes: int = 1
    """Simulated nodes of a plane that has none of its own."""
    authority: CertificateAuthority | None = None
    """The CA of the server; without one, certificates are not signed."""


class PlaneWorkers:
    """The workers of one plane; they work while `turn` is called."""

    def __init__(
        self,
        plane: Plane,
        options: WorkerOptions,
        connect: Connect,
        *,
        now: float,
        seed: int | None = None,
        woken: Callable[[], None] = lambda: None,
    ) -> None:
        """`seed` makes random choices repeatable; `woken` is called when there is work again."""
        self.plane = plane
        self.loop = SteppedLoop(now, woken)
        self.clock = LoopClock(self.loop)
        self.busy_at = now
        """When something last changed in the plane."""
        self._options = options
        self._connect = connect
        self._random = Random(seed)
        self._feed = Feed(plane)
        self._apis: list[FedApi] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def failed(self) -> bool:
        """Whether the workers stopped with an error, which is in the log."""
        return self._task is not None and self._task.done()

    def turn(self, stop: float) -> bool:
        """Run what is ready once, without time passing; whether anything was ready.

        When `time.perf_counter` reaches `stop` the turn is interrupted; the next call resumes it.
        """
        if self._task is None:
            self._task = self.loop.create_task(self._work(), name=f"workers of {self.plane.name}")
        if self.loop.midway:
            return bool(self.loop.turn(stop))
        changed = self._feed.catch_up()
        if changed:
            self.busy_at = self.loop.time()
        if self.loop.turn(stop) or changed:
            return True
        # A write that is on its way to disk will be work for controllers of a lower rank.
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
                # Nodes first: they renew their leases before a controller finds them expired.
                await stack.enter_async_context(
                    Nodes(
                        self._api(KUBELETS),
                        self.clock,
                        self._options.nodes,
                        identify=lambda node: self._api(kubelet(node)),
                    )
                )
                await stack.enter_async_context(
                    Scheduler(self._api(SCHEDULER), clock=self.clock, random=self._random)
                )
                await stack.enter_async_context(
                    Manager(
                        self._api(MANAGER),
                        self._controllers(),
                        identify=lambda name: self._api(controller(name)),
                        clock=self.clock,
                        pace=self.loop.call_when_idle,
                    )
                )
                await self.loop.create_future()
        except Exception:  # noqa: BLE001 - the top level of this loop: one plane's workers stop, not all
            _log.exception("the controllers of plane %s stopped with an error", self.plane.name)

    def _controllers(self) -> Mapping[str, Factory]:
        authority = self._options.authority
        if authority is None:
            return CONTROLLERS
        return {**CONTROLLERS, SIGNER: signing(authority, self.plane.name)}

    def _api(self, identity: Identity) -> FedApi:
        api = FedApi(self._connect(self.plane.name, identity), self._feed)
        self._apis.append(api)
        return api
