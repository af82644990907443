"""All nodes of a task run, or none: when one fails, the others are ended. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kvestigate.jobs.answers import State
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.limits import GATHER_SECONDS, Limits
from kvestigate.jobs.tasks.statuses import TaskJob, node_ended, node_index, node_state


@dataclass(frozen=True, slots=True)
class Verdict:
    """The task has to end."""

    reason: str
    """`node-1: did not start within 300 s`; empty if the reason is that of `first`."""
    first: TaskJob | None
    """The node that failed first."""
    victims: tuple[TaskJob, ...]
    """The jobs that still run and have to be ended."""


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
        nodes = ", ".join(f"node-{node_index(job)}" for job in sorted(late, key=node_index))
        return Verdict(f"{nodes}: did not start within {limit[1]} s", None, going)
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
