"""What a Job needs next: which pods to make or end, and what its status says. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.jobs import indexes, pod_failures
from kvestigate.cluster.controllers.jobs.indexes import index_of
from kvestigate.cluster.controllers.jobs.tally import (
    Tally,
    holds,
    is_indexed,
    replaces_only_failed,
    tally,
)
from kvestigate.cluster.controllers.jobs.verdict import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    SUCCESS_MET,
    Conditions,
    deadline,
    is_finished_job,
    judged,
    verdict_on,
)
from kvestigate.cluster.controllers.objects import Job, JobCondition, JobStatus
from kvestigate.cluster.controllers.pods import (
    first_to_go,
    is_active,
    is_leaving,
    is_ready,
)
from kvestigate.cluster.controllers.times import earliest, stamp
from kvestigate.kube.views.pods import Pod

SUSPENDED = "Suspended"
BURST = 500


@dataclass(frozen=True, slots=True)
class Creation:
    """A pod to be made."""

    index: int | None = None
    failures: int | None = None
    """How often the index has failed, where each index has a limit of its own."""


@dataclass(frozen=True, slots=True)
class Decision:
    status: JobStatus
    """Written before pods are created or deleted."""
    counted: tuple[Pod, ...] = ()
    """Whose end the status has noted: their finalizers go."""
    create: tuple[Creation, ...] = ()
    delete: tuple[Pod, ...] = ()
    failing: bool = False
    """Whether the pods to delete count as failed: the Job itself has."""
    pause: float | None = None


def decide(job: Job, pods: Sequence[Pod], now: float) -> Decision:
    """The next step for a Job that has not finished, with all pods that it owns."""
    ending = verdict_on(job.status.conditions) is not None
    if is_finished_job(job) or job.metadata.deletion_timestamp is not None:
        return Decision(job.status, counted=tuple(pod for pod in pods if holds(pod)))
    counts = tally(job, pods, ending=ending)
    active = [pod for pod in pods if is_active(pod)]
    conditions_now = judged(job, active, counts, now)
    verdict = verdict_on(conditions_now)
    suspended = job.spec.suspend and verdict is None
    if verdict is not None or suspended:
        plan = _Plan(delete=tuple(active))
    else:
        plan = _manage(job, pods, active, counts, now)
    conditions_now, start = _suspension(job, conditions_now, suspended, now)
    status = _status(job, pods, active, counts, conditions_now, start)
    status = _concluded(status, verdict, bool(active) or bool(counts.counted), now)
    late = deadline(job, start, now) if verdict is None and not suspended else None
    return Decision(
        status=status,
        counted=counts.counted,
        create=plan.create,
        delete=plan.delete,
        failing=verdict is not None and verdict.type == FAILURE_TARGET,
        pause=earliest(plan.pause, late),
    )


# -- pods ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    create: tuple[Creation, ...] = ()
    delete: tuple[Pod, ...] = ()
    pause: float | None = None
    """Seconds to wait before there may be more."""


def _manage(
    job: Job, pods: Sequence[Pod], active: Sequence[Pod], tally: Tally, now: float
) -> _Plan:
    wanted = job.spec.parallelism
    if job.spec.completions is not None:
        missing = job.spec.completions - tally.all_succeeded - len(tally.failed_indexes)
        wanted = min(wanted, missing)
    elif tally.all_succeeded:
        wanted = len(active)
    surplus = _surplus(job, active, max(0, wanted), now)
    if surplus:
        return _Plan(delete=surplus)
    leaving = 0
    if replaces_only_failed(job):
        leaving = sum(is_leaving(pod) and not pod.finished for pod in pods)
    room = min(BURST, wanted - len(active) - leaving)
    if room <= 0:
        return _Plan()
    if is_indexed(job):
        return _free_indexes(job, pods, active, tally, room, now)
    failed = [pod for pod in pods if pod_failures.is_failed(pod, only_failed=False)]
    succeeded = [pod for pod in pods if pod.status.phase == "Succeeded"]
    pause = pod_failures.pause(failed, succeeded, now)
    return _Plan(pause=pause) if pause else _Plan((Creation(),) * room)


def _surplus(job: Job, active: Sequence[Pod], wanted: int, now: float) -> tuple[Pod, ...]:
    if not is_indexed(job):
        excess = len(active) - wanted
        return tuple(first_to_go(active, active, now)[:excess]) if excess > 0 else ()
    ordered = sorted(active, key=lambda pod: (index_of(pod) is None, index_of(pod) or 0))
    seen: set[int] = set()
    surplus = []
    for pod in ordered:
        index = index_of(pod)
        bad = index is None or index in seen or index >= (job.spec.completions or 0)
        if bad or len(seen) >= wanted:
            surplus.append(pod)
        elif index is not None:
            seen.add(index)
    return tuple(surplus)


def _free_indexes(
    job: Job,
    pods: Sequence[Pod],
    active: Sequence[Pod],
    tally: Tally,
    room: int,
    now: float,
) -> _Plan:
    taken = tally.completed_indexes | tally.failed_indexes
    taken |= {index for pod in active if (index := index_of(pod)) is not None}
    free = [index for index in range(job.spec.completions or 0) if index not in taken]
    if job.spec.backoff_limit_per_index is None:
        failed = [pod for pod in pods if pod_failures.is_failed(pod, only_failed=False)]
        succeeded = [pod for pod in pods if pod.status.phase == "Succeeded"]
        pause = pod_failures.pause(failed, succeeded, now)
        creations = () if pause else tuple(Creation(index) for index in free[:room])
        return _Plan(creations, pause=pause or None)
    candidates, pauses = [], []
    last = _last_failures(pods)
    for index in free:
        pod = last.get(index)
        if pod is None:
            candidates.append(Creation(index, 0))
            continue
        failures = pod_failures.failure_count(pod)
        ignored = pod_failures.judge(job.spec.pod_failure_policy, pod).action
        failures += ignored != pod_failures.IGNORE
        wait = pod_failures.remaining(failures, pod_failures.ended_at(pod), now)
        if wait:
            pauses.append(wait)
        else:
            candidates.append(Creation(index, failures))
    return _Plan(tuple(candidates[:room]), pause=earliest(*pauses))


def _last_failures(pods: Sequence[Pod]) -> dict[int, Pod]:
    last: dict[int, Pod] = {}
    for pod in sorted(pods, key=pod_failures.failure_count):
        index = index_of(pod)
        if index is not None and pod_failures.is_failed(pod, only_failed=False):
            last[index] = pod
    return last


# -- status --------------------------------------------------------------------------------


def _suspension(
    job: Job, conditions_now: Conditions, suspended: bool, now: float
) -> tuple[Conditions, datetime | None]:
    start = job.status.start_time
    at = stamp(now)
    was = conditions.is_true(conditions_now, SUSPENDED)
    if suspended:
        new = JobCondition(SUSPENDED, "True", "JobSuspended", "Job suspended", at, at)
        return (conditions_now if was else conditions.put(conditions_now, new)), None
    if was:
        new = JobCondition(SUSPENDED, "False", "JobResumed", "Job resumed", at, at)
        return conditions.put(conditions_now, new), at
    return conditions_now, start or at


def _status(
    job: Job,
    pods: Sequence[Pod],
    active: Sequence[Pod],
    tally: Tally,
    conditions_now: Conditions,
    start: datetime | None,
) -> JobStatus:
    phases = Counter(is_leaving(pod) and not pod.finished for pod in pods)
    per_index = job.spec.backoff_limit_per_index is not None
    return JobStatus(
        conditions=conditions_now,
        start_time=start,
        completion_time=job.status.completion_time,
        active=len(active),
        succeeded=tally.succeeded,
        failed=tally.failed,
        terminating=phases[True],
        ready=sum(map(is_ready, active)),
        completed_indexes=indexes.write(tally.completed_indexes),
        failed_indexes=indexes.write(tally.failed_indexes) if per_index else None,
        uncounted_terminated_pods=tally.uncounted,
    )


def _concluded(
    status: JobStatus, verdict: JobCondition | None, busy: bool, now: float
) -> JobStatus:
    """The final condition, once no pod is left that could still change a counter."""
    uncounted = status.uncounted_terminated_pods
    waiting = uncounted is not None and (uncounted.succeeded or uncounted.failed)
    if verdict is None or busy or waiting or status.terminating:
        return status
    at = stamp(now)
    outcome = COMPLETE if verdict.type == SUCCESS_MET else FAILED
    final = JobCondition(outcome, "True", verdict.reason, verdict.message, at, at)
    return msgspec.structs.replace(
        status,
        conditions=conditions.put(status.conditions, final),
        completion_time=at if outcome == COMPLETE else None,
    )
