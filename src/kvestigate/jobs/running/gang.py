"""All nodes of a task run, or none: when one fails, all are started again or ended. Pure.

A task is started again if the cluster took a node from it (a drain, an eviction, a lost machine),
if its program failed in a way that the task file wants to recover from, or with its next choice of
resources if it did not start in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kvestigate.jobs.answers import State
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.compile import later_choices
from kvestigate.jobs.tasks.limits import GATHER_SECONDS, Limits
from kvestigate.jobs.tasks.statuses import TaskJob, node_ended, node_index, node_state
from kvestigate.kube.views.pods import Pod


@dataclass(frozen=True, slots=True)
class Verdict:
    """The task has to end."""

    reason: str
    """`node-1: did not start within 300 s`; empty if the reason is that of `first`."""
    first: TaskJob | None
    """The node that failed first."""
    victims: tuple[TaskJob, ...]
    """The jobs that still run and have to be ended."""
    late: tuple[int, ...] = ()
    """The nodes that do not run although they should."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The task is to be started again."""

    story: str
    """`node-1: evicted; started again`"""
    error: bool = False
    """Whether its program failed."""
    next_choice: bool = False
    """With the next choice of resources."""


_OVERDUE = 60.0
_MOST_RESTARTS = 100
"""A task that the cluster ends this often will not be left alone."""


def second_chance(
    jobs: Sequence[TaskJob], pods: Sequence[Pod], verdict: Verdict | None
) -> Restart | None:
    """The restart of a task that has failed or did not start, if there is to be one."""
    first = min(jobs, key=node_index).metadata.annotations
    failed = [job for job in jobs if node_state(job) is State.FAILED]
    if any(labels.REASON in job.metadata.annotations for job in jobs):
        return None  # it was ended for good
    if count_of(first, labels.RESTARTS) >= _MOST_RESTARTS:
        return None
    cause = taken(jobs, pods)
    late = verdict is not None and bool(verdict.late)
    several = len(jobs) > 1  # Kubernetes itself replaces the pod of a single node
    if cause and ((failed and several) or late):
        return Restart(f"{cause}; all nodes were started again")
    allowed = count_of(first, labels.RECOVERS)
    if failed and several and count_of(first, labels.ERRORS) < allowed:
        nodes = ", ".join(f"node-{node_index(job)}" for job in failed)
        return Restart(f"{nodes}: the program failed; all nodes were started again", error=True)
    if late and verdict is not None and later_choices(first):
        return Restart(verdict.reason, next_choice=True)
    return None


def taken(jobs: Sequence[TaskJob], pods: Sequence[Pod]) -> str:
    """What the cluster took from the task: `node-1: EvictionByEvictionAPI: ...`; empty if nothing.

    A job fails with `PodFailurePolicy` for that, and for exit codes to recover from.
    """
    for pod in pods:
        for condition in pod.status.conditions:
            if condition.type == "DisruptionTarget" and condition.status == "True":
                return f"node-{node_index(pod)}: {condition.reason}: {condition.message}"
        if pod.status.reason in ("Evicted", "NodeLost", "Shutdown", "NodeShutdown", "Preempting"):
            return f"node-{node_index(pod)}: {pod.status.reason}: {pod.status.message}"
    for job in jobs:
        for condition in job.status.conditions:
            if condition.status == "True" and condition.reason == "PodFailurePolicy":
                return f"node-{node_index(job)}: {condition.message}"
    return ""


def count_of(annotations: Mapping[str, str], key: str) -> int:
    text = annotations.get(key, "")
    return int(text) if text.isdecimal() and len(text) < 7 else 0


def abandoned(pods: Sequence[Pod], now: datetime) -> float | None:
    """Seconds until a pod that was taken from the task should be gone; negative if it is stuck.

    The kubelet of a lost machine never says that a pod has ended. None if no pod is ending.
    """
    ends = [
        pod.metadata.deletion_timestamp
        for pod in pods
        if pod.metadata.deletion_timestamp is not None and taken((), [pod])
    ]
    return min(((end - now).total_seconds() + _OVERDUE for end in ends), default=None)


def has_started(pod: Pod) -> bool:
    """Whether its container has run, even if the cluster has since lost sight of it."""
    return any(
        status.state.running is not None or status.state.terminated is not None
        for status in pod.status.container_statuses
    )


def judge(
    jobs: Sequence[TaskJob], gathering_since: datetime | None, now: datetime
) -> Verdict | None:
    """The verdict if the task has to end; `gathering_since` is the start of its first node."""
    going = tuple(job for job in jobs if not node_ended(job))
    if not going:
        return None
    failed = [job for job in jobs if node_state(job) is State.FAILED]
    if failed:
        return Verdict("", min(failed, key=_failed_at), going)
    late = [job for job in going if node_state(job) is State.PENDING]
    if late and (limit := _limit(jobs, gathering_since)) is not None and now >= limit[0]:
        indices = tuple(sorted(map(node_index, late)))
        nodes = ", ".join(f"node-{index}" for index in indices)
        return Verdict(f"{nodes}: did not start within {limit[1]} s", None, going, indices)
    return None


def partial(jobs: Sequence[TaskJob]) -> bool:
    """Whether some nodes run, or are done, while others have not started."""
    states = {node_state(job) for job in jobs}
    return State.PENDING in states and bool(states & {State.RUNNING, State.COMPLETED})


def next_look(
    jobs: Sequence[TaskJob], gathering_since: datetime | None, now: datetime
) -> float | None:
    """Seconds until the next deadline; None without one."""
    pending = [job for job in jobs if node_state(job) is State.PENDING]
    limit = _limit(jobs, gathering_since) if pending else None
    return None if limit is None else max((limit[0] - now).total_seconds(), 0.0) + 0.5


def _limit(
    jobs: Sequence[TaskJob], gathering_since: datetime | None
) -> tuple[datetime, int] | None:
    """The time by which all nodes have to run, and the limit in seconds."""
    deadlines = []
    created = [job.metadata.creation_timestamp for job in jobs]
    known = [when for when in created if when is not None]
    if known:
        text = jobs[0].metadata.annotations.get(labels.START_WITHIN, "")
        allowed = int(text) if text.isdecimal() else Limits().start_seconds
        deadlines.append((min(known) + timedelta(seconds=allowed), allowed))
    if gathering_since is not None:
        deadlines.append((gathering_since + timedelta(seconds=GATHER_SECONDS), GATHER_SECONDS))
    return min(deadlines, default=None)


def _failed_at(job: TaskJob) -> tuple[datetime, int]:
    times = [
        condition.last_transition_time
        for condition in job.status.conditions
        if condition.type in ("Failed", "FailureTarget") and condition.last_transition_time
    ]
    at = min(times, default=job.metadata.creation_timestamp)
    assert at is not None
    return at, node_index(job)
