"""The status that a node reports for a pod. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvestigate.cluster.node.pods import lifecycle
from kvestigate.cluster.node.pods.lifecycle import Records
from kvestigate.cluster.node.pods.records import NEVER_STARTED, ContainerRecord, Run, Stage
from kvestigate.cluster.node.spec.pod import Container, Pod, is_ephemeral, is_sidecar
from kvestigate.kube.times import text
from kvestigate.kube.views.pods import ResourceRequirements

CRASH_LOOP = "CrashLoopBackOff"
MESSAGES = 12 * 1024
"""Bytes of termination messages in one status: each container has its equal share."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod is."""

    host_ip: str
    pod_ip: str = ""
    """Empty until the pod has one."""


def pod_status(
    pod: Pod,
    records: Records,
    now: float,
    *,
    started_at: float,
    place: Place,
    before: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole status, as a strategic merge patch of the one that is stored.

    `before` is the one written last, which the pod itself may not show yet.
    """
    current = phase(pod, records, now, started_at)
    status: dict[str, Any] = {
        "phase": current,
        "startTime": pod.status.start_time or text(started_at),
        "conditions": _conditions(
            pod, records, now, current, _since(pod, before), ready_to_start=bool(place.pod_ip)
        ),
        "hostIP": place.host_ip,
        "hostIPs": [{"ip": place.host_ip}],
        "containerStatuses": [
            container_status(pod, container, records, now) for container in pod.spec.containers
        ],
    }
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    if place.pod_ip:
        status["podIP"] = place.pod_ip
        status["podIPs"] = [{"ip": place.pod_ip}]
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [
            container_status(pod, container, records, now) for container in pod.spec.init_containers
        ]
    if pod.spec.ephemeral_containers:
        status["ephemeralContainerStatuses"] = [
            container_status(pod, container, records, now)
            for container in pod.spec.ephemeral_containers
        ]
    if lifecycle.overdue(pod, now, started_at):
        status["reason"] = lifecycle.DEADLINE_EXCEEDED
        status["message"] = lifecycle.TOO_LONG
    return status


def phase(pod: Pod, records: Records, now: float, started_at: float) -> str:
    if any(records.get(container.name, NEVER_STARTED).running for container in pod.containers):
        return "Running" if _begun(pod, records) else "Pending"
    plan = lifecycle.decide(pod, records, now, started_at=started_at)
    if lifecycle.Finish() not in plan.actions:
        return "Running" if _begun(pod, records) else "Pending"
    if lifecycle.overdue(pod, now, started_at):
        return "Failed"
    done = all(
        lifecycle.succeeded(records.get(container.name, NEVER_STARTED))
        for container in pod.spec.containers
    )
    return "Succeeded" if done else "Failed"


def _begun(pod: Pod, records: Records) -> bool:
    """Whether a main container has started at least once, its hook included."""
    own = [records.get(container.name, NEVER_STARTED) for container in pod.spec.containers]
    return any(record.run and (not record.hooked or record.previous) for record in own)


def container_status(
    pod: Pod, container: Container, records: Records, now: float
) -> dict[str, Any]:
    record = records.get(container.name, NEVER_STARTED)
    state, last = _states(pod, container, record, records, now)
    status: dict[str, Any] = {
        "name": container.name,
        "image": container.image,
        "imageID": f"kvestigate://{container.image}" if record.run else "",
        "ready": _is_ready(pod, container, record),
        "started": record.up,
        "restartCount": record.restarts,
        "state": state,
        "lastState": last,
    }
    if record.run is not None:
        status["containerID"] = record.run.id
    if record.running and (container.resources.requests or container.resources.limits):
        status["allocatedResources"] = container.resources.requests
        status["resources"] = _amounts(container.resources)
    return status


def _amounts(resources: ResourceRequirements) -> dict[str, dict[str, str]]:
    amounts = {"limits": resources.limits, "requests": resources.requests}
    return {name: amount for name, amount in amounts.items() if amount}


def _is_ready(pod: Pod, container: Container, record: ContainerRecord) -> bool:
    init = any(other.name == container.name for other in pod.spec.init_containers)
    if init and not is_sidecar(container):
        return lifecycle.succeeded(record)
    if is_ephemeral(pod, container):
        return False  # they do not count for readiness
    return record.up and record.health.ready


def _states(
    pod: Pod, container: Container, record: ContainerRecord, records: Records, now: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`state` and `lastState`."""
    room = MESSAGES // len(pod.containers)
    previous = _terminated(record.previous, room) if record.previous else {}
    if record.hooked:
        return _waiting("ContainerCreating", ""), previous
    if record.stage is Stage.RUNNING:
        assert record.run is not None
        return {"running": {"startedAt": text(record.run.started_at)}}, previous
    if record.stage is Stage.EXITED:
        assert record.run is not None
        assert record.run.exit is not None
        pause = lifecycle.due_at(record) - record.run.exit.at
        again = lifecycle.restarts(pod, container, record.run.exit) and not pod.terminating
        if again and now < lifecycle.due_at(record):
            return _waiting(CRASH_LOOP, _back_off(pod, container, pause)), _terminated(
                record.run, room
            )
        return _terminated(record.run, room), previous
    last = _terminated(record.run, room) if record.run else {}
    if record.waiting is not None:
        return _waiting(record.waiting.reason, record.waiting.message), last
    init = container.name in {other.name for other in pod.spec.init_containers}
    blocked = bool(pod.spec.init_containers) and not lifecycle.initialized(pod, records)
    first = pod.spec.init_containers[0].name if pod.spec.init_containers else ""
    creating = container.name == first if init else not blocked
    return _waiting("ContainerCreating" if creating else "PodInitializing", ""), last


def _back_off(pod: Pod, container: Container, pause: float) -> str:
    meta = pod.metadata
    minutes, seconds = divmod(int(pause), 60)
    length = f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
    return (
        f"back-off {length} restarting failed container={container.name} "
        f"pod={meta.name}_{meta.namespace}({meta.uid})"
    )


def _waiting(reason: str, message: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def _terminated(run: Run, room: int) -> dict[str, Any]:
    ending = run.exit
    if ending is None:
        return {}
    ended: dict[str, Any] = {
        "exitCode": ending.code,
        "reason": ending.reason or ("Completed" if ending.code == 0 else "Error"),
        "startedAt": text(run.started_at),
        "finishedAt": text(ending.at),
        "containerID": run.id,
    }
    if ending.message:
        ended["message"] = ending.message.encode()[:room].decode("utf-8", "ignore")
    return {"terminated": ended}


def _since(pod: Pod, before: Mapping[str, Any] | None) -> dict[tuple[str, str], str]:
    """When each condition took the value it has: (type, status) -> time."""
    if before is not None:
        return {
            (condition["type"], condition["status"]): condition["lastTransitionTime"]
            for condition in before["conditions"]
        }
    return {
        (condition.type, condition.status): condition.last_transition_time.strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        for condition in pod.status.conditions
        if condition.last_transition_time is not None
    }


def _conditions(
    pod: Pod,
    records: Records,
    now: float,
    current: str,
    since: Mapping[tuple[str, str], str],
    *,
    ready_to_start: bool,
) -> list[dict[str, Any]]:
    incomplete = [
        container.name
        for container in pod.spec.init_containers
        if not _is_ready(pod, container, records.get(container.name, NEVER_STARTED))
    ]
    unready = [
        container.name
        for container in (
            *(container for container in pod.spec.init_containers if is_sidecar(container)),
            *pod.spec.containers,
        )
        if not _is_ready(pod, container, records.get(container.name, NEVER_STARTED))
    ]
    done = current in ("Succeeded", "Failed")
    why = ""
    if done:
        why = "PodCompleted" if current == "Succeeded" else "PodFailed"
    up = lifecycle.initialized(pod, records)
    judged = [
        ("PodReadyToStartContainers", ready_to_start and not done, "", ""),
        _judged("Initialized", up, "PodCompleted" if up and why == "PodCompleted" else "",
                "ContainersNotInitialized", "incomplete", incomplete),
        _ready(pod, unready, why),
        _judged("ContainersReady", not unready and not done, "", why or "ContainersNotReady",
                "unready", [] if done else unready),
        ("PodScheduled", True, "", ""),
    ]  # fmt: skip
    return [
        _condition(pod, name, "True" if value else "False", reason, message, since, now)
        for name, value, reason, message in judged
    ]


def _ready(pod: Pod, unready: Sequence[str], why: str) -> tuple[str, bool, str, str]:
    """Ready needs its containers, and the conditions that the spec names beside them."""
    if unready or why:
        names = [] if why else unready
        return _judged("Ready", False, "", why or "ContainersNotReady", "unready", names)
    set_by_others = {condition.type: condition.status for condition in pod.status.conditions}
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        if name not in set_by_others:
            message = f'corresponding condition of pod readiness gate "{name}" does not exist.'
            return "Ready", False, "ReadinessGatesNotReady", message
        if set_by_others[name] != "True":
            message = (
                f'the status of pod readiness gate "{name}" is not "True", '
                f"but {set_by_others[name]}"
            )
            return "Ready", False, "ReadinessGatesNotReady", message
    return "Ready", True, "", ""


def _judged(
    type: str, value: bool, good: str, bad: str, adjective: str, names: Sequence[str]
) -> tuple[str, bool, str, str]:
    if value:
        return type, True, good, ""
    message = f"containers with {adjective} status: [{' '.join(names)}]" if names else ""
    return type, False, bad, message


def _condition(
    pod: Pod,
    type: str,
    word: str,
    reason: str,
    message: str,
    since: Mapping[tuple[str, str], str],
    now: float,
) -> dict[str, Any]:
    condition: dict[str, Any] = {
        "type": type,
        "status": word,
        "lastProbeTime": None,
        "lastTransitionTime": since.get((type, word)) or text(now),
        "reason": reason or None,
        "message": message or None,
    }
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    return condition
