"""Runs the scheduler of one API server.

    async with Scheduler(api): ...

Entering waits until every cache is filled; leaving lets bindings in flight finish. Decisions are
made one after another on this task's own view of the cluster, in which a pod counts on its node
from the moment of the decision; writing them down happens beside.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from types import TracebackType

from kvestigate import errors
from kvestigate.aio.clock import WALL, Clock
from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.client.api import Api
from kvestigate.client.recorder import NORMAL, WARNING, News, Recorder
from kvestigate.cluster.scheduler.binding import Writer
from kvestigate.cluster.scheduler.decision import Decider, NoFit, Placement
from kvestigate.cluster.scheduler.devices import DevicePlan, DeviceWriter, plan_devices
from kvestigate.cluster.scheduler.following import Follower
from kvestigate.cluster.scheduler.preemption import Preemption, Refusal, refuse
from kvestigate.cluster.scheduler.queue import PodQueue, Waiting
from kvestigate.cluster.scheduler.registry import DEFAULT
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.feasibility.volumes import Claims, Plan, claims_of, plan
from kvestigate.kube.views.pods import Pod

_log = logging.getLogger(__name__)

NAME = "default-scheduler"
WRITERS = 32
"""Writes in flight at a time: enough to hide a server's latency."""
_GRACE = 5.0
"""Seconds that work in hand has to finish."""
_EVENTS_WAITING = 10_000
"""As many pods may be placed at once."""
_SLICE = 16
"""Decisions after which others on the loop have their turn."""

Write = Callable[[], Awaitable[None]]


class Scheduler:
    """Places the pods whose `schedulerName` is its name."""

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock = WALL,
        name: str = NAME,
        random: Random | None = None,
    ) -> None:
        self._name = name
        self._random = random or Random()
        self._state = ClusterState()
        self._queue = PodQueue(clock)
        self._decider = Decider(DEFAULT, self._random)
        self._follower = Follower(api, self._state, self._queue, name)
        self._writer = Writer(api, clock, self._follower, self._state)
        self._device_writer = DeviceWriter(api, clock, self._follower, self._state)
        self._recorder = Recorder(api, clock, waiting=_EVENTS_WAITING)
        self._room = asyncio.Semaphore(WRITERS)
        self._writes: set[asyncio.Task[None]] = set()
        self._supervisor = Supervisor("scheduler")
        self._deciding: asyncio.Task[None] | None = None

    async def run(self, ready: Ready[None] | None = None) -> None:
        """Schedule until cancelled."""
        async with self:
            if ready is not None:
                ready(None)
            await asyncio.Event().wait()

    async def __aenter__(self) -> Scheduler:
        await self._supervisor.__aenter__()
        try:
            starting = [
                informer.start(self._supervisor, f"informer of {name}")
                for name, informer in self._follower.informers.items()
            ]
            await asyncio.gather(*starting)
        except BaseException as error:
            try:
                await self._supervisor.__aexit__(type(error), error, error.__traceback__)
            except BaseExceptionGroup as failures:
                # An informer that fails cancels us: what it failed of is what has to be known.
                raise failures.exceptions[0] from None
            raise
        self._supervisor.spawn("events", self._recorder.run())
        self._deciding = self._supervisor.spawn("decisions", self._decide())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._deciding is not None:
            self._deciding.cancel()
        try:
            async with asyncio.timeout(_GRACE):
                while self._writes:
                    await asyncio.wait(self._writes)
                await self._recorder.drain()
        except TimeoutError:
            _log.warning("not all decisions could be written down before the end")
        await self._supervisor.__aexit__(kind, error, traceback)

    # -- deciding --------------------------------------------------------------------------------

    async def _decide(self) -> None:
        decided = 0
        while True:
            waiting = await self._queue.next()
            write = self._attempt(waiting)
            if write is not None:
                await self._room.acquire()
                task = self._supervisor.spawn("write", self._write(write))
                self._writes.add(task)
                task.add_done_callback(self._written)
            decided += 1
            if decided % _SLICE == 0:
                await asyncio.sleep(0)

    def _attempt(self, waiting: Waiting) -> Write | None:
        pod = waiting.pod
        try:
            decision = self._decider.decide(pod, self._state)
            if isinstance(decision, NoFit):
                return self._refuse(waiting, decision)
            return self._assume(waiting, decision)
        except Exception:  # noqa: BLE001 - one odd pod must not stop the others
            _log.exception("no decision on %s; it will be tried again", pod.key)
            self._queue.back_off(waiting)
            return None

    def _assume(self, waiting: Waiting, placement: Placement) -> Write | None:
        pod, node = waiting.pod, placement.node
        volumes = Plan()
        if pod.claims:
            claims = claims_of(pod, self._state)
            if isinstance(claims, Claims):
                planned = plan(claims, self._state.nodes[node], self._state)
                volumes = planned if isinstance(planned, Plan) else volumes
        devices = plan_devices(pod, node, self._state)
        self._state.withdraw(pod.uid)
        self._state.place(pod, node)
        if volumes == Plan() and not devices.takes_long:
            return lambda: self._bind(waiting, node, devices)
        # Making volumes can take minutes, so it must not keep a writer.
        self._supervisor.spawn(f"binding of {pod.key}", self._bind(waiting, node, devices, volumes))
        return None

    def _refuse(self, waiting: Waiting, no_fit: NoFit) -> Write:
        pod = waiting.pod
        refusal = refuse(pod, no_fit, self._state, self._decider, self._random)
        if refusal.nominated:
            self._state.nominate(pod, refusal.nominated)
        elif refusal.nominated is not None:
            self._state.withdraw(pod.uid)
        if no_fit.fatal is not None:
            self._queue.back_off(waiting)
        else:
            self._queue.park(waiting, no_fit.plugins)
        return lambda: self._tell_refusal(pod, refusal)

    # -- writing ---------------------------------------------------------------------------------

    async def _write(self, write: Write) -> None:
        try:
            await write()
        except errors.KvestigateError as error:
            _log.warning("a decision was not written down: %s", error)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writes.discard(task)
        self._room.release()

    async def _bind(
        self, waiting: Waiting, node: str, devices: DevicePlan, volumes: Plan | None = None
    ) -> None:
        pod = waiting.pod
        step = 'running PreBind plugin "DynamicResources"'
        try:
            if devices.takes_long:
                note = f"waiting for binding conditions for device on node {node}"
                self._tell(pod.pod, NORMAL, "BindingConditionsPending", note)
            await self._device_writer.reserve(pod, devices)
            step = 'binding rejected: running Bind plugin "DefaultBinder"'
            if volumes is not None:
                await self._writer.prepare_volumes(volumes, node)
            await self._writer.bind(pod, node)
        except errors.KvestigateError as error:
            await self._take_back(waiting, node, devices, f"{step}: {error.message}")
            return
        self._queue.remove(pod.uid)
        note = f"Successfully assigned {pod.key} to {node}"
        self._tell(pod.pod, NORMAL, "Scheduled", note)

    async def _take_back(
        self, waiting: Waiting, node: str, devices: DevicePlan, message: str
    ) -> None:
        pod = waiting.pod
        current = self._follower.pod(pod.key)
        if current is not None and current.metadata.uid == pod.uid and current.spec.node_name:
            return  # it has a node, ours or that of somebody faster
        self._state.take_away(pod.uid)
        await self._device_writer.unreserve(pod, devices)
        if current is None or current.metadata.uid != pod.uid:
            self._queue.remove(pod.uid)
            return
        _log.warning("%s was not bound to %s: %s", pod.key, node, message)
        self._queue.back_off(waiting)
        self._tell(pod.pod, WARNING, "FailedScheduling", message)
        await self._patient(self._writer.condition(current, "SchedulerError", message, None))

    async def _tell_refusal(self, pod: PodFacts, refusal: Refusal) -> None:
        current = self._follower.pod(pod.key) or pod.pod
        message = refusal.message
        self._tell(current, WARNING, "FailedScheduling", message)
        await self._patient(
            self._writer.condition(current, refusal.reason, message, refusal.nominated)
        )
        if refusal.deallocated is not None:
            await self._patient(self._device_writer.deallocate(refusal.deallocated))
        if refusal.preemption is not None:
            await self._evict(pod, refusal.preemption)

    async def _evict(self, pod: PodFacts, preemption: Preemption) -> None:
        for victim in preemption.victims:
            if victim.terminating:
                continue
            try:
                await self._writer.evict(victim, self._name)
            except errors.NotFound:
                continue  # it has left by itself
            note = f"Preempted by pod {pod.uid} on node {preemption.node}"
            self._tell(victim.pod, NORMAL, "Preempted", note)
        for other in list(self._state.nominated.get(preemption.node, {}).values()):
            if other.priority < pod.priority:
                self._state.withdraw(other.uid)
                await self._patient(self._writer.forget_nomination(other.pod))

    def _tell(self, pod: Pod, type: str, reason: str, message: str) -> None:
        metadata = pod.metadata
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        }
        self._recorder.tell(News(tuple(about.items()), self._name, type, reason, message))

    async def _patient(self, write: Awaitable[None]) -> None:
        """Write, and ignore that the object is gone or was changed by another client."""
        try:
            await write
        except (errors.NotFound, errors.Conflict) as error:
            _log.debug("too late: %s", error)
