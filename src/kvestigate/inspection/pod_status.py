"""The status of a pod in kubectl's words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kvestigate.kube.views.meta import Condition
from kvestigate.kube.views.pods import CondensedContainer, CondensedContainerStatus
from kvestigate.kube.views.pods import CondensedPod as Pod


def status_of(pod: Pod) -> str:
    """kubectl's STATUS column: the phase, or the reason of a container that does not run."""
    reason = pod.status.reason or pod.status.phase
    if any(condition.reason == "SchedulingGated" for condition in _conditions(pod, "PodScheduled")):
        reason = "SchedulingGated"
    starting = "" if _is(pod, "Initialized") else _initialising(pod)
    reason = starting or _of_containers(pod, reason)
    if pod.metadata.deletion_timestamp is not None:
        return "Unknown" if pod.status.reason == "NodeLost" else "Terminating"
    return reason


def ready_of(pod: Pod) -> tuple[int, int]:
    """The number of ready containers, and of all containers and sidecars."""
    sidecars = {
        init_container.name
        for init_container in pod.spec.init_containers
        if init_container.restart_policy == "Always"
    }
    counted = [
        *(status for status in pod.status.init_container_statuses if status.name in sidecars),
        *pod.status.container_statuses,
    ]
    ready = sum(status.ready and status.state.running is not None for status in counted)
    return ready, len(pod.spec.containers) + len(sidecars)


def restarts_of(pod: Pod) -> int:
    statuses = pod.status.all_statuses
    return sum(status.restart_count for status in statuses)


def restarted_at(pod: Pod) -> datetime | None:
    """The time of the last restart of a container; None if unknown."""
    statuses = pod.status.all_statuses
    ended = (status.last_state.terminated for status in statuses if status.restart_count)
    return max((state.finished_at for state in ended if state and state.finished_at), default=None)


def _initialising(pod: Pod) -> str:
    """The status of the first init container that is not done; empty if all are."""
    specs = {init_container.name: init_container for init_container in pod.spec.init_containers}
    total = len(pod.spec.init_containers)
    for index, status in enumerate(pod.status.init_container_statuses):
        reason = _init_reason(specs.get(status.name), status)
        if reason is not None:
            return f"Init:{reason}" if reason else f"Init:{index}/{total}"
    return ""


def _init_reason(
    container: CondensedContainer | None, status: CondensedContainerStatus
) -> str | None:
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
    return any(state.status == "True" for state in _conditions(pod, condition))


def _conditions(pod: Pod, type: str) -> Sequence[Condition]:
    return [condition for condition in pod.status.conditions if condition.type == type]
