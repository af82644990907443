"""What to do next with a pod. Spec and observations in, actions and a wake-up time out. Pure.

The order is the kubelet's: init containers one by one (a sidecar among them only has to have
started), then all others, each after the postStart hook of the one before; when those are done
for good, the sidecars end in reverse order. A container that exits is started again as the
restart policy says, at once the first time and then after 10 s, doubled each time up to 5
minutes. Ephemeral containers start as soon as they are there, and once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kvestigate.cluster.node.pods.records import (
    NEVER_STARTED,
    ContainerRecord,
    Exit,
    Health,
    Run,
    Stage,
)
from kvestigate.cluster.node.spec.pod import Container, Pod, is_ephemeral, is_sidecar

FIRST_PAUSE = 10.0
LONGEST_PAUSE = 300.0
FORGIVEN_AFTER = 2 * LONGEST_PAUSE
"""After a run of this many seconds the back-off starts anew."""

DEADLINE_EXCEEDED = "DeadlineExceeded"
TOO_LONG = "Pod was active on the node longer than the specified deadline"


@dataclass(frozen=True, slots=True)
class Start:
    container: str


@dataclass(frozen=True, slots=True)
class Stop:
    container: str
    grace: float
    why: str
    """The sentence of the event."""
    after: tuple[str, ...] = ()
    """Containers that have to end before this one is signalled, within the grace period."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing runs and nothing will: release what the pod held."""


Action = Start | Stop | Finish
Records = Mapping[str, ContainerRecord]


@dataclass(frozen=True, slots=True)
class Plan:
    actions: tuple[Action, ...] = ()
    wake_at: float | None = None
    """When to decide again if nothing happens before."""


def decide(pod: Pod, records: Records, now: float, *, started_at: float) -> Plan:
    """The next actions for a pod that this node took on at `started_at`."""
    if pod.terminating or overdue(pod, now, started_at) or _over(pod, records):
        return _wind_down(pod, records)
    actions: list[Action] = []
    wakes: list[float] = []
    if pod.spec.active_deadline_seconds is not None:
        wakes.append(started_at + pod.spec.active_deadline_seconds)
    for container in runnable(pod, records):
        record = records.get(container.name, NEVER_STARTED)
        if record.running:
            if not record.health.alive and not record.stopping:
                actions.append(_unhealthy(pod, container, record))
        elif _wanted(pod, container, record):
            due = due_at(record)
            if due <= now:
                actions.append(Start(container.name))
            else:
                wakes.append(due)
    return Plan(tuple(actions), min(wakes, default=None))


def runnable(pod: Pod, records: Records) -> list[Container]:
    """The containers that may run now: up to the first init container that is not done."""
    containers = list(pod.spec.ephemeral_containers)
    begun = any(records.get(main.name, NEVER_STARTED).run for main in pod.spec.containers)
    for container in pod.spec.init_containers:
        record = records.get(container.name, NEVER_STARTED)
        if is_sidecar(container):
            containers.append(container)
            if record.hooked or (not begun and not record.up):
                return containers
        elif not begun and not succeeded(record):
            return [*containers, container]
    for container in pod.spec.containers:
        containers.append(container)
        if records.get(container.name, NEVER_STARTED).hooked:
            break
    return containers


def succeeded(record: ContainerRecord) -> bool:
    return record.stage is Stage.EXITED and _exit(record).code == 0


def initialized(pod: Pod, records: Records) -> bool:
    """Whether every init container is done, and every sidecar up."""
    if any(records.get(container.name, NEVER_STARTED).run for container in pod.spec.containers):
        return True
    return all(
        record.up if is_sidecar(container) else succeeded(record)
        for container in pod.spec.init_containers
        for record in [records.get(container.name, NEVER_STARTED)]
    )


def restarts(pod: Pod, container: Container, exit: Exit) -> bool:
    """Whether an exited container runs again."""
    if is_ephemeral(pod, container):
        return False
    policy = container.restart_policy or pod.spec.restart_policy
    init = any(other.name == container.name for other in pod.spec.init_containers)
    if init and not is_sidecar(container):
        return exit.code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and exit.code != 0)


def due_at(record: ContainerRecord) -> float:
    """When a container that should run may be started."""
    if record.waiting is not None:
        return record.retry_at
    if record.run is None or record.run.exit is None:
        return 0.0
    return record.run.exit.at + _pause_before_restart(record.run, record.pause)


def started(
    record: ContainerRecord, run: Run, health: Health, *, hooked: bool = False
) -> ContainerRecord:
    """The record after `run` began."""
    ended = record.run
    if ended is None or ended.exit is None:
        return ContainerRecord(run=run, restarts=record.restarts, health=health, hooked=hooked)
    paused = _pause_before_restart(ended, record.pause)
    return ContainerRecord(
        run=run,
        previous=ended,
        restarts=record.restarts + 1,
        pause=min(max(paused * 2, FIRST_PAUSE), LONGEST_PAUSE),
        health=health,
        hooked=hooked,
    )


def exited(record: ContainerRecord, exit: Exit) -> ContainerRecord:
    """The record after its run ended."""
    assert record.run is not None
    return msgspec.structs.replace(
        record, run=msgspec.structs.replace(record.run, exit=exit), stopping=False, hooked=False
    )


def overdue(pod: Pod, now: float, started_at: float) -> bool:
    deadline = pod.spec.active_deadline_seconds
    return deadline is not None and now >= started_at + deadline


def _pause_before_restart(ended: Run, pause: float) -> float:
    assert ended.exit is not None
    return 0.0 if ended.exit.at - ended.started_at > FORGIVEN_AFTER else pause


def _wanted(pod: Pod, container: Container, record: ContainerRecord) -> bool:
    if record.stage is Stage.WAITING:
        return True
    return restarts(pod, container, _exit(record))


def _exit(record: ContainerRecord) -> Exit:
    assert record.run is not None
    assert record.run.exit is not None
    return record.run.exit


def _over(pod: Pod, records: Records) -> bool:
    """Whether the pod's work is done for good, well or badly."""
    for container in pod.spec.init_containers:
        record = records.get(container.name, NEVER_STARTED)
        if is_sidecar(container) or record.stage is not Stage.EXITED:
            continue
        if _exit(record).code != 0 and not restarts(pod, container, _exit(record)):
            return True
    return all(
        record.stage is Stage.EXITED and not restarts(pod, container, _exit(record))
        for container in pod.spec.containers
        for record in [records.get(container.name, NEVER_STARTED)]
    )


def _wind_down(pod: Pod, records: Records) -> Plan:
    """Stop everything: the main containers together, then the sidecars, the last one first.

    All are told at once, so that their hooks run and the time they have is the same.
    """
    stops: list[Stop] = []
    ahead: tuple[str, ...] = ()
    for group in _stop_order(pod):
        running = [
            container.name
            for container in group
            if records.get(container.name, NEVER_STARTED).running
        ]
        stops += [
            Stop(name, pod.grace, f"Stopping container {name}", ahead)
            for name in running
            if not records[name].stopping
        ]
        ahead += tuple(running)
    return Plan(tuple(stops)) if ahead else Plan((Finish(),))


def _stop_order(pod: Pod) -> Sequence[Sequence[Container]]:
    sidecars = [container for container in pod.spec.init_containers if is_sidecar(container)]
    inits = [container for container in pod.spec.init_containers if not is_sidecar(container)]
    main = [*inits, *pod.spec.containers, *pod.spec.ephemeral_containers]
    return [main, *([container] for container in reversed(sidecars))]


def _unhealthy(pod: Pod, container: Container, record: ContainerRecord) -> Stop:
    failed = "liveness" if record.health.started else "startup"
    probe = container.liveness_probe if record.health.started else container.startup_probe
    grace = probe.termination_grace_period_seconds if probe is not None else None
    return Stop(
        container.name,
        float(pod.spec.termination_grace_period_seconds if grace is None else grace),
        f"Container {container.name} failed {failed} probe, will be restarted",
    )
