"""One pod on this node: carries out what `lifecycle` decides, and reports what came of it.

The problem: what happens to a pod comes from many sides at once. The API changes its spec or
deletes it, containers end, probes fail, hooks finish, timers run out, and the agent itself may be
new and find containers that another one started. Handlers that each act on their event have to
know every other's state; the kubelet's history is full of what then goes wrong.

The way: events do nothing but write down what they saw, as a `ContainerRecord`, and wake the pod's
key in the agent's work queue. `sync` then runs, never twice at once for a pod: it asks the pure
`lifecycle.decide` what to do for this spec, these records and this time, does it, and asks again
until nothing is left to do. Then it reports, and returns when to look again if nothing happens.
So the order of events does not matter, and each rule of the lifecycle is tested without a pod.

What takes long must not hold up `sync`, which would hold up the deletion of the pod: postStart
hooks, stopping (hook, signal, grace, kill) and probes are tasks of their own, that write to the
records and wake the pod when they end.

Two things are there for thousands of pods. Our own status report comes back as a change of the
pod: `_decided` recognises it, and nothing is decided or written again. And a container that
ends with its signal is noted at once, so a simulated pod goes with one write instead of four.

What an earlier agent left is taken over by `adopt`, and restart counts go on from the status that
it wrote; the back-off starts anew, since nobody wrote down how long the last one was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.client.cache import key_of
from kvestigate.cluster.node.gpu.allocation import NoDevices
from kvestigate.cluster.node.hosts.interface import Ceiling, Ending, LaunchFailed, Process, RunKey
from kvestigate.cluster.node.hosts.logs import Log
from kvestigate.cluster.node.pods import lifecycle
from kvestigate.cluster.node.pods.claims import Unprepared
from kvestigate.cluster.node.pods.context import NodeContext
from kvestigate.cluster.node.pods.hooks import Hooks
from kvestigate.cluster.node.pods.launching import ceiling
from kvestigate.cluster.node.pods.lifecycle import Finish, Start, Stop
from kvestigate.cluster.node.pods.preparing import NotMounted, Preparation
from kvestigate.cluster.node.pods.probes import Prober, initial_health
from kvestigate.cluster.node.pods.records import (
    NEVER_STARTED,
    ContainerRecord,
    Exit,
    Health,
    Run,
    Stage,
    Waiting,
)
from kvestigate.cluster.node.pods.reporting import Reporter, confirm_deletion
from kvestigate.cluster.node.pods.stopping import Stopping
from kvestigate.cluster.node.spec import environment
from kvestigate.cluster.node.spec.images import (
    PULL_BACK_OFF,
    UNKNOWN,
    EntrypointUnknown,
    ImageMissing,
    InvalidImageName,
    check_exists,
    check_name,
)
from kvestigate.cluster.node.spec.pod import Container, LifecycleHandler, Pod

RETRY_SECONDS = 5.0
"""Between two attempts to get what the API did not have yet."""
HOPELESS_SECONDS = 300.0
CANNOT_RUN = 127
UNPREPARED = "FailedPrepareDynamicResources"
LAST_LINES, LAST_BYTES = 80, 2048
"""Of a log that stands for a termination message."""


class PodWorker:
    """The agent's side of one pod. `sync` is never called twice at once."""

    def __init__(self, pod: Pod, context: NodeContext, preparation: Preparation) -> None:
        self.pod = pod
        self.key = key_of(pod)
        self.started_at = started_at(pod) or context.clock.now()
        self.processes: dict[str, Process] = {}
        """The current or last run of each container."""
        self.previous: dict[str, Process] = {}
        self.finished = False
        """Nothing runs, nothing will, and the API knows."""
        self._context = context
        self._preparation = preparation
        self._records: dict[str, ContainerRecord] = {}
        self._decided: object = None
        """The inputs of the last decision whose outcome the API knows."""
        self._stops: dict[str, Stopping] = {}
        self._probers: dict[str, Prober] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._hooks = Hooks(context)
        self._reporter = Reporter(context)
        self._late = False
        """Whether the event about the passed deadline was written."""
        self._ceilings: dict[str, Ceiling] = {}
        """The limits that each running container is held to."""
        self._recall(pod)

    def _recall(self, pod: Pod) -> None:
        """Restart counts go on where an earlier agent stopped."""
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            if status.container_id:
                self._records[status.name] = ContainerRecord(restarts=status.restart_count + 1)

    def adopt(self, process: Process) -> None:
        """Take over a run of an earlier agent; called in the order of the attempts."""
        name = process.key.container
        record = self._records.get(name, NEVER_STARTED)
        run = Run(container_id(process.key), process.started_at)
        previous = record.run if name in self.processes else None
        if name in self.processes:
            self.previous[name] = self.processes[name]
        container = self.pod.container(name)
        self._records[name] = ContainerRecord(
            run=run,
            previous=previous,
            restarts=process.key.attempt,
            pause=lifecycle.FIRST_PAUSE if process.key.attempt else 0.0,
            health=initial_health(container) if container else Health(),
        )
        self.processes[name] = process
        if process.ended.done():
            self._note_end(name, process)
        else:
            process.ended.add_done_callback(partial(self._on_end, name, process))
            if container is not None:
                self._probe(container, process)

    def log(self, container: str, *, previous: bool) -> Log | None:
        process = (self.previous if previous else self.processes).get(container)
        return process.log if process is not None else None

    @property
    def records(self) -> dict[str, ContainerRecord]:
        return self._records

    # Deciding.

    async def sync(self, pod: Pod) -> float | None:
        """Bring the pod to where it should be; when to look again if nothing happens."""
        self._mind_images(pod)
        self.pod = pod
        if self.finished:
            await confirm_deletion(self._context.api, pod)
            return None
        if not pod.spec.readiness_gates and self._decided == self._inputs(pod):
            return None  # the change is our own report
        self._hurry()
        self._resize()
        self._mind_deadline()
        while True:
            now = self._context.clock.now()
            plan = lifecycle.decide(pod, self._records, now, started_at=self.started_at)
            if Finish() in plan.actions:
                await self._finish()
                return None
            if not plan.actions:
                inputs = self._inputs(pod)  # now: records change while the report is written
                self._decided = inputs if await self._report() else None
                return plan.wake_at
            for action in plan.actions:
                if isinstance(action, Start):
                    await self._start(action.container)
                    if self._records[action.container].hooked:
                        break  # the others wait for its hook
                elif isinstance(action, Stop):
                    self._stop(action)

    def _mind_images(self, pod: Pod) -> None:
        """Another image is tried at once; a container that runs an old one is started anew."""
        for container in pod.containers:
            record, before = self._records.get(container.name), self.pod.container(container.name)
            if record is None or before is None or before.image == container.image:
                continue
            if record.waiting is not None:
                self._records[container.name] = msgspec.structs.replace(record, retry_at=0.0)
            elif record.running and not record.stopping:
                why = f"Container {container.name} definition changed, will be restarted"
                self._stop(Stop(container.name, pod.grace, why))

    def _mind_deadline(self) -> None:
        late = lifecycle.overdue(self.pod, self._context.clock.now(), self.started_at)
        if late and not self._late:
            self._event("Normal", lifecycle.DEADLINE_EXCEEDED, lifecycle.TOO_LONG)
        self._late = late

    def _inputs(self, pod: Pod) -> object:
        """All that a decision depends on: equal inputs need no second decision."""
        meta = pod.metadata
        requested = (meta.generation, meta.deletion_timestamp, meta.deletion_grace_period_seconds)
        return pod.spec, requested, self._records.copy(), self._context.clock.now()

    async def discard(self) -> None:
        """The pod is gone from the API: end everything now and leave nothing."""
        for prober in self._probers.values():
            prober.stop()
        for task in list(self._tasks):
            task.cancel()
        running = [process for process in self.processes.values() if not process.ended.done()]
        for process in running:
            process.kill()
        for process in running:
            await process.ended
        await self._context.host.forget(self.pod.metadata.uid)
        self._preparation.forget(self.pod)
        self._context.release(self.pod)

    def release(self) -> None:
        """The agent goes; what runs may go on."""
        for prober in self._probers.values():
            prober.stop()
        for task in list(self._tasks):
            task.cancel()

    # Starting.

    async def _start(self, name: str) -> None:
        container = self.pod.container(name)
        assert container is not None
        record = self._records.get(name, NEVER_STARTED)
        key = RunKey(self.pod.metadata.uid, name, _attempt(record))
        try:
            check_name(container.image)
            await self._preparation.prepare_devices(self.pod)
            check_exists(container.image, self._context.config.missing_images)
            prepared = await self._preparation.prepare(self.pod, container, key)
            process = await self._context.host.start(prepared)
            if not key.attempt:
                for shortfall in self._context.host.shortfalls(prepared):
                    self._event("Warning", "NotEnforced", shortfall, container=name)
        except (InvalidImageName, ImageMissing) as failure:
            self._image_missing(container, failure)
        except (NotMounted, Unprepared) as missing:
            self._wait(name, Waiting("ContainerCreating"), RETRY_SECONDS)
            reason = "FailedMount" if isinstance(missing, NotMounted) else UNPREPARED
            self._event("Warning", reason, str(missing))
        except environment.MissingReference as missing:
            self._wait(name, Waiting("CreateContainerConfigError", str(missing)), RETRY_SECONDS)
            self._event("Warning", "Failed", f"Error: {missing}", container=name)
        except NoDevices as missing:
            self._wait(name, Waiting("UnexpectedAdmissionError", str(missing)), RETRY_SECONDS)
            self._event("Warning", "UnexpectedAdmissionError", str(missing))
        except EntrypointUnknown as unknown:
            self._wait(name, Waiting(UNKNOWN, str(unknown)), HOPELESS_SECONDS)
            self._event("Warning", UNKNOWN, str(unknown), container=name)
        except LaunchFailed as failure:
            self._failed_to_run(name, record, failure)
        except (errors.KvestigateError, OSError, ValueError) as failure:
            self._wait(name, Waiting("CreateContainerError", str(failure)), RETRY_SECONDS)
            self._event("Warning", "Failed", f"Error: {failure}", container=name)
        else:
            self._begun(container, record, process)

    def _begun(self, container: Container, record: ContainerRecord, process: Process) -> None:
        name = container.name
        if name in self.processes:
            self.previous[name] = self.processes[name]
        self.processes[name] = process
        self._ceilings[name] = ceiling(container)
        run = Run(container_id(process.key), process.started_at)
        hook = container.lifecycle.post_start
        self._records[name] = lifecycle.started(
            record, run, initial_health(container), hooked=hook is not None
        )
        process.ended.add_done_callback(partial(self._on_end, name, process))
        if not self._context.config.terse:
            self._event("Normal", "Created", f"Container created: {name}", container=name)
            self._event("Normal", "Started", f"Container started: {name}", container=name)
        if hook is None:
            self._probe(container, process)
        else:
            self._spawn(self._post_start(container, process, hook))

    async def _post_start(
        self, container: Container, process: Process, hook: LifecycleHandler
    ) -> None:
        """Run the hook; the container counts as started when it has succeeded."""
        name = container.name
        work = asyncio.ensure_future(self._hooks.run(container, process, hook))
        either: set[asyncio.Future[Any]] = {work, process.ended}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
        if process.ended.done() or self._records[name].stopping:
            return
        self._records[name] = msgspec.structs.replace(self._records[name], hooked=False)
        if work.result():
            # Not what it said: an event is for more eyes than a server's answer may be.
            self._event("Warning", "FailedPostStartHook", "PostStartHook failed", container=name)
            self._stop(Stop(name, self.pod.grace, "FailedPostStartHook"))
        else:
            self._probe(container, process)
        self._context.wake(self.key)

    def _image_missing(self, container: Container, why: Exception) -> None:
        name, image = container.name, container.image
        if isinstance(why, InvalidImageName):
            self._wait(name, Waiting("InvalidImageName", str(why)), RETRY_SECONDS)
            self._event("Warning", "InspectFailed", str(why), container=name)
            self._event("Warning", "Failed", "Error: InvalidImageName", container=name)
            return
        back_off = f'Back-off pulling image "{image}"'
        message = f"{back_off}: ErrImagePull: {why}"
        self._wait(name, Waiting(PULL_BACK_OFF, message), HOPELESS_SECONDS)
        self._event("Normal", "Pulling", f'Pulling image "{image}"', container=name)
        self._event("Warning", "Failed", f'Failed to pull image "{image}": {why}', container=name)
        self._event("Warning", "Failed", "Error: ErrImagePull", container=name)
        self._event("Normal", "BackOff", back_off, container=name)
        self._event("Warning", "Failed", "Error: ImagePullBackOff", container=name)

    def _failed_to_run(self, name: str, record: ContainerRecord, failure: LaunchFailed) -> None:
        now = self._context.clock.now()
        key = RunKey(self.pod.metadata.uid, name, _attempt(record))
        begun = lifecycle.started(record, Run(container_id(key), now), Health())
        ended = Exit(CANNOT_RUN, now, reason=failure.reason, message=failure.message)
        self._records[name] = lifecycle.exited(begun, ended)
        self._event("Warning", "Failed", f"Error: {failure.message}", container=name)

    def _wait(self, name: str, waiting: Waiting, seconds: float) -> None:
        record = self._records.get(name, NEVER_STARTED)
        self._records[name] = msgspec.structs.replace(
            record, waiting=waiting, retry_at=self._context.clock.now() + seconds
        )

    # Running.

    def _probe(self, container: Container, process: Process) -> None:
        prober = Prober(self._context, container, process, self._on_health)
        self._probers[container.name] = prober
        prober.start()

    def _on_health(self, name: str, health: Health, failure: str) -> None:
        record = self._records[name]
        if failure:
            self._event("Warning", "Unhealthy", failure, container=name)
        if record.health != health:
            self._records[name] = msgspec.structs.replace(record, health=health)
            self._context.wake(self.key)

    def _on_end(self, name: str, process: Process, _: asyncio.Future[Ending]) -> None:
        if self.processes.get(name) is process and self._records[name].running:
            self._note_end(name, process)
            self._context.wake(self.key)

    def _note_end(self, name: str, process: Process) -> None:
        prober = self._probers.pop(name, None)
        if prober is not None:
            prober.stop()
        self._stops.pop(name, None)
        ending = process.ended.result()
        reason = "OOMKilled" if ending.out_of_memory else "Error" if ending.code else "Completed"
        ended = Exit(
            ending.code,
            ending.at or self._context.clock.now(),
            reason=reason,
            message=ending.message or self._last_words(name, process, ending),
        )
        self._records[name] = lifecycle.exited(self._records[name], ended)
        container = self.pod.container(name)
        if container is not None and ending.code and lifecycle.restarts(self.pod, container, ended):
            record = self._records[name]
            if lifecycle.due_at(record) > ended.at and not self.pod.terminating:
                self._event(
                    "Warning",
                    "BackOff",
                    f"Back-off restarting failed container {name} in pod {self.pod.full_name}",
                    container=name,
                )

    def _last_words(self, name: str, process: Process, ending: Ending) -> str:
        message = self._preparation.last_words(process.key)
        container = self.pod.container(name)
        if message or not ending.code or container is None:
            return message
        if container.termination_message_policy != "FallbackToLogsOnError":
            return ""
        return process.log.last(LAST_LINES, LAST_BYTES).decode("utf-8", "replace")

    def _resize(self) -> None:
        """Hold running containers to what the spec says by now."""
        for container in self.pod.containers:
            record = self._records.get(container.name, NEVER_STARTED)
            wanted, held = ceiling(container), self._ceilings.get(container.name)
            if not record.running or record.stopping or wanted == held:
                continue
            self._ceilings[container.name] = wanted
            if held is not None and _needs_restart(container, held, wanted):
                why = f"Container {container.name} resize requires restart"
                self._stop(Stop(container.name, self.pod.grace, why))
            else:
                self._context.host.resize(self.processes[container.name], wanted)

    # Stopping.

    def _stop(self, action: Stop) -> None:
        name = action.container
        container = self.pod.container(name)
        assert container is not None
        self._records[name] = msgspec.structs.replace(self._records[name], stopping=True)
        if not (self.pod.terminating and self._context.config.terse):
            self._event("Normal", "Killing", action.why, container=name)
        process = self.processes[name]
        if name in self._probers:
            self._probers[name].hold()
        stopping = Stopping(
            self._context.clock,
            self._hooks,
            container,
            action.grace,
            ahead=[self.processes[other].ended for other in action.after],
            hook_failed=partial(
                self._event, "Warning", "FailedPreStopHook", "PreStopHook failed", container=name
            ),
        )
        if stopping.begin(process):
            self._note_end(name, process)
        else:
            self._stops[name] = stopping
            self._spawn(stopping.run(process))

    def _hurry(self) -> None:
        """A second request to delete may leave less time than the first."""
        if self.pod.terminating:
            for stopping in self._stops.values():
                stopping.shorten(self.pod.grace)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Reporting.

    async def _finish(self) -> None:
        # First, as others are placed where its devices are from the moment the report is read.
        self._preparation.free(self.pod)
        if not self._reporter.end_is_unseen(self.pod):
            await self._report()
        self.finished = True
        await confirm_deletion(self._context.api, self.pod)

    async def _report(self) -> bool:
        return await self._reporter.report(self.pod, self._records, self.started_at)

    def _event(self, type: str, reason: str, message: str, *, container: str = "") -> None:
        self._context.event(self.pod, type, reason, message, container=container)


def container_id(key: RunKey) -> str:
    return f"kvestigate://{key.id}"


def _needs_restart(container: Container, held: Ceiling, wanted: Ceiling) -> bool:
    changed = {"memory": held.memory != wanted.memory, "cpu": held.cpu_millis != wanted.cpu_millis}
    return any(
        changed.get(policy.resource_name) and policy.restart_policy == "RestartContainer"
        for policy in container.resize_policy
    )


def _attempt(record: ContainerRecord) -> int:
    return record.restarts + 1 if record.stage is Stage.EXITED or record.run else record.restarts


def started_at(pod: Pod) -> float:
    """The `startTime` that an earlier agent wrote into the status; 0 if there is none."""
    written = pod.status.start_time
    return datetime.fromisoformat(written).timestamp() if written else 0.0
