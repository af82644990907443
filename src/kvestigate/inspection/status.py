"""The status of a pod in kubectl's words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kvestigate.kube.views.meta import Condition
from kvestigate.snapshot.objects import Container, ContainerStatus, Pod


def status_of(pod: Pod) -> str:
    """kubectl's STATUS column: the phase, or the reason of a container that does not run."""
    reason = pod.status.reason or pod.status.phase
    if any(it.reason == "SchedulingGated" for it in _conditions(pod, "PodScheduled")):
        reason = "SchedulingGated"
    starting = "" if _is(pod, "Initialized") else _initialising(pod)
    reason = starting or _of_containers(pod, reason)
    if pod.metadata.deletion_timestamp is not None:
        return "Unknown" if pod.status.reason == "NodeLost" else "Terminating"
    return reason


def ready_of(pod: Pod) -> tuple[int, int]:
    """The number of ready containers, and of all containers and sidecars."""
    sidecars = {it.name for it in pod.spec.init_containers if it.restart_policy == "Always"}
    counted = [
        *(it for it in pod.status.init_container_statuses if it.name in sidecars),
        *pod.status.container_statuses,
    ]
    ready = sum(it.ready and it.state.running is not None for it in counted)
    return ready, len(pod.spec.containers) + len(sidecars)


def restarts_of(pod: Pod) -> int:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return sum(it.restart_count for it in statuses)


def restarted_at(pod: Pod) -> datetime | None:
    """The time of the last restart of a container; None if unknown."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ended = (it.last_state.terminated for it in statuses if it.restart_count)
    return max((it.finished_at for it in ended if it and it.finished_at), default=None)


def _initialising(pod: Pod) -> str:
    """The status of the first init container that is not done; empty if all are."""
    specs = {it.name: it for it in pod.spec.init_containers}
    total = len(pod.spec.init_containers)
    for index, status in enumerate(pod.status.init_container_statuses):
        said = _init_reason(specs.get(status.name), status)
        if said is not None:
            return f"Init:{said}" if said else f"Init:{index}/{total}"
    return ""


def _init_reason(container: Container | None, status: ContainerStatus) -> str | None:
    """None if the init container is done; empty if it is in progress."""
    state = status.state
    sidecar = container is not None and container.restart_policy == "Always"
    if state.terminated is not None:
        ended = state.terminated
        if ended.exit_code == 0:
            return None
        return ended.reason or _exit(ended.signal, ended.exit_code)
    if sidecar and state.running is not None and status.ready:
        return None
    waiting = state.waiting
    if waiting is not None and waiting.reason not in ("", "PodInitializing"):
        return waiting.reason
    return ""


def _of_containers(pod: Pod, reason: str) -> str:
    running = False
    for status in reversed(pod.status.container_statuses):
        state = status.state
        if state.waiting is not None and state.waiting.reason:
            reason = state.waiting.reason
        elif state.terminated is not None:
            ended = state.terminated
            reason = ended.reason or _exit(ended.signal, ended.exit_code)
        elif status.ready and state.running is not None:
            running = True
    # One container has completed and another still runs, so the pod runs.
    if reason == "Completed" and running:
        return "Running" if _is(pod, "Ready") else "NotReady"
    return reason


def _exit(signal: int, code: int) -> str:
    return f"Signal:{signal}" if signal else f"ExitCode:{code}"


def _is(pod: Pod, condition: str) -> bool:
    return any(it.status == "True" for it in _conditions(pod, condition))


def _conditions(pod: Pod, type: str) -> Sequence[Condition]:
    return [it for it in pod.status.conditions if it.type == type]
