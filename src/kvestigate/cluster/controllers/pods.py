"""Whether pods are active, ready, available; which is deleted first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import log2
from typing import Any

from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.times import seconds
from kvestigate.kube.views.pods import Pod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"": 0, "Pending": 0, "Unknown": 1, "Running": 2}
_EPOCH = datetime.fromtimestamp(0, UTC)


def is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def is_active(pod: Pod) -> bool:
    """Neither finished nor being deleted."""
    return not pod.finished and not is_leaving(pod)


def is_ready(pod: Pod) -> bool:
    return conditions.is_true(pod.status.conditions, "Ready")


def ready_since(pod: Pod) -> float:
    ready = conditions.find(pod.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return 0.0
    return seconds(ready.last_transition_time)


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the pod counts as available: 0 if it does, None if it is not ready."""
    if not is_ready(pod):
        return None
    if not min_ready_seconds:
        return 0.0
    since = ready_since(pod)
    return max(0.0, since + min_ready_seconds - now) if since else None


def is_available(pod: Pod, min_ready_seconds: int, now: float) -> bool:
    return available_in(pod, min_ready_seconds, now) == 0


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the next ready pod becomes available."""
    pauses = (available_in(pod, min_ready_seconds, now) for pod in pods)
    return min((pause for pause in pauses if pause), default=None)


def restarts(pod: Pod) -> int:
    return max((status.restart_count for status in pod.status.container_statuses), default=0)


def first_to_go(pods: Iterable[Pod], related: Sequence[Pod], now: float) -> list[Pod]:
    """Pods in the order in which a smaller replica count takes them away.

    What is worth least goes first: unscheduled, pending, not ready, cheap, on a node that has
    many of its kind (`related`), young, often restarted.
    """
    crowd = Counter(pod.spec.node_name for pod in related if is_active(pod))

    def worth(pod: Pod) -> tuple[Any, ...]:
        ready = is_ready(pod)
        created = seconds(pod.metadata.creation_timestamp)
        return (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase, 1),
            ready,
            _cost(pod),
            -crowd[pod.spec.node_name] if pod.spec.node_name else 0,
            _age(ready_since(pod), now) if ready else 0,
            -restarts(pod),
            _age(created, now),
            pod.metadata.uid,
        )

    return sorted(pods, key=worth)


def _age(since: float, now: float) -> int:
    """Age in powers of two: pods of about one age go in no particular order."""
    return int(log2(max(1.0, now - since)))


def _cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def by_age(view: Any) -> tuple[datetime, str]:
    """A sort key: the oldest first."""
    return view.metadata.creation_timestamp or _EPOCH, view.metadata.name
