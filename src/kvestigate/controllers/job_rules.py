"""What a Job needs next: which ends to count, which pods to make or end, which verdict. Pure.

A pod's end must be counted exactly once though the counter and the pod are different objects.
So a pod keeps a finalizer until its uid stands in `uncountedTerminatedPods`; once the finalizer
is gone the uid moves into the counter. A crash between any two of these steps loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from kvestigate.controllers import conditions, indexes, podfailures
from kvestigate.controllers.indexes import index_of
from kvestigate.controllers.pods import first_to_go, is_active, is_finished, is_leaving, is_ready
from kvestigate.controllers.times import earliest, seconds, stamp
from kvestigate.controllers.views import Job, JobCondition, JobStatus, UncountedPods
from kvestigate.kube.views.pods import Pod

FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
SUCCESS_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"
BURST = 500

Conditions = tuple[JobCondition, ...]


@dataclass(frozen=True, slots=True)
class Creation:
    """A pod to be made."""

    index: int | None = None
    failures: int | None = None
    """How often the index has failed, where each index has a limit of its own."""


@dataclass(frozen=True, slots=True)
class Decision:
    status: JobStatus
    """To be written before anything else, except in creating pods."""
    counted: tuple[Pod, ...] = ()
    """Whose end the status has noted: their finalizers go."""
    create: tuple[Creation, ...] = ()
    delete: tuple[Pod, ...] = ()
    failing: bool = False
    """Whether the pods to delete count as failed: the Job itself has."""
    pause: float | None = None


@dataclass(frozen=True, slots=True)
class _Tally:
    """The ends of pods, noted and counted."""

    succeeded: int
    failed: int
    uncounted: UncountedPods
    counted: tuple[Pod, ...]
    completed_indexes: frozenset[int]
    failed_indexes: frozenset[int]
    fatal: str = ""
    """Why the policy ends the whole Job."""

    @property
    def all_succeeded(self) -> int:
        return self.succeeded + len(self.uncounted.succeeded)

    @property
    def all_failed(self) -> int:
        return self.failed + len(self.uncounted.failed)


def is_finished_job(job: Job) -> bool:
    found = job.status.conditions
    return conditions.is_true(found, COMPLETE) or conditions.is_true(found, FAILED)


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def decide(job: Job, pods: Sequence[Pod], now: float) -> Decision:
    """The next step for a Job that has not finished, with all pods that it owns."""
    ending = _verdict_on(job.status.conditions) is not None
    if is_finished_job(job) or job.metadata.deletion_timestamp is not None:
        return Decision(job.status, counted=tuple(pod for pod in pods if holds(pod)))
    tally = _tally(job, pods, ending=ending)
    active = [pod for pod in pods if is_active(pod)]
    found = _judged(job, active, tally, now)
    verdict = _verdict_on(found)
    suspended = job.spec.suspend and verdict is None
    if verdict is not None or suspended:
        plan = _Plan(delete=tuple(active))
    else:
        plan = _manage(job, pods, active, tally, now)
    found, start = _suspension(job, found, suspended, now)
    status = _status(job, pods, active, tally, found, start)
    status = _concluded(status, verdict, bool(active) or bool(tally.counted), now)
    late = _deadline(job, start, now) if verdict is None and not suspended else None
    return Decision(
        status=status,
        counted=tally.counted,
        create=plan.create,
        delete=plan.delete,
        failing=verdict is not None and verdict.type == FAILURE_TARGET,
        pause=earliest(plan.pause, late),
    )


def holds(pod: Pod) -> bool:
    """Whether the end of the pod is still to be counted."""
    return FINALIZER in pod.metadata.finalizers


# -- counting ------------------------------------------------------------------------------


def _tally(job: Job, pods: Sequence[Pod], *, ending: bool) -> _Tally:
    status = job.status
    noted = status.uncounted_terminated_pods or UncountedPods()
    held = {pod.metadata.uid: pod for pod in pods if holds(pod)}
    succeeded = [uid for uid in noted.succeeded if uid in held]
    failed = [uid for uid in noted.failed if uid in held]
    completed = indexes.parse(status.completed_indexes)
    lost = indexes.parse(status.failed_indexes)
    known = {*succeeded, *failed}
    only_failed = _replaces_only_failed(job) and not ending
    fatal = ""
    counted = [held[uid] for uid in known]
    for pod in held.values():
        if pod.metadata.uid in known:
            continue
        index = index_of(pod)
        if pod.status.phase == "Succeeded":
            counted.append(pod)
            if not is_indexed(job):
                succeeded.append(pod.metadata.uid)
            elif index is not None and index < (job.spec.completions or 0):
                completed |= {index}
        elif podfailures.is_failed(pod, only_failed=only_failed):
            verdict = podfailures.judge(job.spec.pod_failure_policy, pod)
            if verdict.action == podfailures.FAIL_JOB:
                fatal = fatal or verdict.message
            if _index_is_lost(job, pod, verdict):
                lost |= {index} if index is not None else set()
            elif _awaits_replacement(job, pod, pods, completed | lost, ending):
                continue
            counted.append(pod)
            if verdict.action != podfailures.IGNORE:
                failed.append(pod.metadata.uid)
    return _Tally(
        succeeded=len(completed)
        if is_indexed(job)
        else status.succeeded + len(noted.succeeded) - _still(noted.succeeded, held),
        failed=status.failed + len(noted.failed) - _still(noted.failed, held),
        uncounted=UncountedPods(tuple(succeeded), tuple(failed)),
        counted=tuple(counted),
        completed_indexes=completed,
        failed_indexes=lost - completed,
        fatal=fatal,
    )


def _still(noted: Iterable[str], held: dict[str, Pod]) -> int:
    return sum(uid in held for uid in noted)


def _replaces_only_failed(job: Job) -> bool:
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def _index_is_lost(job: Job, pod: Pod, verdict: podfailures.Verdict) -> bool:
    limit = job.spec.backoff_limit_per_index
    if limit is None:
        return False
    if verdict.action == podfailures.FAIL_INDEX:
        return True
    return verdict.action != podfailures.IGNORE and podfailures.failure_count(pod) >= limit


def _awaits_replacement(
    job: Job, pod: Pod, pods: Sequence[Pod], settled: frozenset[int], ending: bool
) -> bool:
    """Where each index has its limit, the last failed pod is what remembers the count."""
    if job.spec.backoff_limit_per_index is None or ending:
        return False
    index = index_of(pod)
    if index in settled:
        return False
    return not any(
        other is not pod
        and index_of(other) == index
        and podfailures.failure_count(other) > podfailures.failure_count(pod)
        for other in pods
    )


# -- judging -------------------------------------------------------------------------------


def _verdict_on(found: Conditions) -> JobCondition | None:
    for outcome in (FAILURE_TARGET, SUCCESS_MET):
        condition = conditions.find(found, outcome)
        if condition is not None and condition.status == "True":
            return condition
    return None


def _judged(job: Job, active: Sequence[Pod], tally: _Tally, now: float) -> Conditions:
    found = job.status.conditions
    if _verdict_on(found) is not None:
        return found
    for outcome, (reason, message) in (
        (FAILURE_TARGET, _failure(job, active, tally, now)),
        (SUCCESS_MET, _success(job, active, tally)),
    ):
        if reason:
            at = stamp(now)
            return conditions.put(found, JobCondition(outcome, "True", reason, message, at, at))
    return found


def _failure(job: Job, active: Sequence[Pod], tally: _Tally, now: float) -> tuple[str, str]:
    spec = job.spec
    if tally.fatal:
        return "PodFailurePolicy", tally.fatal
    if tally.all_failed > spec.backoff_limit or _restarted_too_often(job, active):
        message = "Job has reached the specified backoff limit"
        return "BackoffLimitExceeded", message
    if not spec.suspend and _deadline(job, job.status.start_time, now) == 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    lost = tally.failed_indexes
    if spec.max_failed_indexes is not None and len(lost) > spec.max_failed_indexes:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", message
    if lost and len(lost) + len(tally.completed_indexes) >= (spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return "", ""


def _restarted_too_often(job: Job, active: Sequence[Pod]) -> bool:
    if (job.spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        status.restart_count
        for pod in active
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    limit = job.spec.backoff_limit
    return restarts >= limit if limit else restarts > 0


def _success(job: Job, active: Sequence[Pod], tally: _Tally) -> tuple[str, str]:
    rule = _matched_success_rule(job, tally.completed_indexes)
    if rule is not None:
        return "SuccessPolicy", f"Matched rules at index {rule}"
    wanted = job.spec.completions
    if wanted is None:
        done = tally.all_succeeded > 0 and not active
    else:
        done = tally.all_succeeded >= wanted and not job.spec.suspend
    if done:
        message = "Reached expected number of succeeded pods"
        return "CompletionsReached", message
    return "", ""


def _matched_success_rule(job: Job, completed: frozenset[int]) -> int | None:
    policy = job.spec.success_policy
    for position, rule in enumerate(policy.rules if policy else ()):
        among = completed
        if rule.succeeded_indexes is not None:
            chosen = indexes.parse(rule.succeeded_indexes)
            among = completed & chosen
            if rule.succeeded_count is None and among == chosen:
                return position
        if rule.succeeded_count is not None and len(among) >= rule.succeeded_count:
            return position
    return None


def _deadline(job: Job, start: datetime | None, now: float) -> float | None:
    limit = job.spec.active_deadline_seconds
    if limit is None or start is None:
        return None
    return max(0.0, seconds(start) + limit - now)


# -- pods ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    create: tuple[Creation, ...] = ()
    delete: tuple[Pod, ...] = ()
    pause: float | None = None
    """Seconds to wait before there may be more."""


def _manage(
    job: Job, pods: Sequence[Pod], active: Sequence[Pod], tally: _Tally, now: float
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
    if _replaces_only_failed(job):
        leaving = sum(is_leaving(pod) and not is_finished(pod) for pod in pods)
    room = min(BURST, wanted - len(active) - leaving)
    if room <= 0:
        return _Plan()
    if is_indexed(job):
        return _free_indexes(job, pods, active, tally, room, now)
    failed = [pod for pod in pods if podfailures.is_failed(pod, only_failed=False)]
    succeeded = [pod for pod in pods if pod.status.phase == "Succeeded"]
    pause = podfailures.pause(failed, succeeded, now)
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
    tally: _Tally,
    room: int,
    now: float,
) -> _Plan:
    taken = tally.completed_indexes | tally.failed_indexes
    taken |= {index for pod in active if (index := index_of(pod)) is not None}
    free = [index for index in range(job.spec.completions or 0) if index not in taken]
    if job.spec.backoff_limit_per_index is None:
        failed = [pod for pod in pods if podfailures.is_failed(pod, only_failed=False)]
        succeeded = [pod for pod in pods if pod.status.phase == "Succeeded"]
        pause = podfailures.pause(failed, succeeded, now)
        made = () if pause else tuple(Creation(index) for index in free[:room])
        return _Plan(made, pause=pause or None)
    found, pauses = [], []
    last = _last_failures(pods)
    for index in free:
        pod = last.get(index)
        if pod is None:
            found.append(Creation(index, 0))
            continue
        failures = podfailures.failure_count(pod)
        ignored = podfailures.judge(job.spec.pod_failure_policy, pod).action
        failures += ignored != podfailures.IGNORE
        wait = podfailures.remaining(failures, podfailures.ended_at(pod), now)
        if wait:
            pauses.append(wait)
        else:
            found.append(Creation(index, failures))
    return _Plan(tuple(found[:room]), pause=earliest(*pauses))


def _last_failures(pods: Sequence[Pod]) -> dict[int, Pod]:
    last: dict[int, Pod] = {}
    for pod in sorted(pods, key=podfailures.failure_count):
        index = index_of(pod)
        if index is not None and podfailures.is_failed(pod, only_failed=False):
            last[index] = pod
    return last


# -- status --------------------------------------------------------------------------------


def _suspension(
    job: Job, found: Conditions, suspended: bool, now: float
) -> tuple[Conditions, datetime | None]:
    start = job.status.start_time
    at = stamp(now)
    was = conditions.is_true(found, SUSPENDED)
    if suspended:
        new = JobCondition(SUSPENDED, "True", "JobSuspended", "Job suspended", at, at)
        return (found if was else conditions.put(found, new)), None
    if was:
        new = JobCondition(SUSPENDED, "False", "JobResumed", "Job resumed", at, at)
        return conditions.put(found, new), at
    return found, start or at


def _status(
    job: Job,
    pods: Sequence[Pod],
    active: Sequence[Pod],
    tally: _Tally,
    found: Conditions,
    start: datetime | None,
) -> JobStatus:
    phases = Counter(is_leaving(pod) and not is_finished(pod) for pod in pods)
    per_index = job.spec.backoff_limit_per_index is not None
    return JobStatus(
        conditions=found,
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
