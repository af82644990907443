"""Whether a Job has succeeded or failed, and why. Pure.

A verdict comes first (`SuccessCriteriaMet`, `FailureTarget`); the Job is finished (`Complete`,
`Failed`) once its pods are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.jobs import indexes
from kvestigate.cluster.controllers.jobs.tally import Tally
from kvestigate.cluster.controllers.objects import Job, JobCondition
from kvestigate.cluster.controllers.times import seconds, stamp
from kvestigate.kube.views.pods import Pod

COMPLETE, FAILED = "Complete", "Failed"
SUCCESS_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"

Conditions = tuple[JobCondition, ...]


def is_finished_job(job: Job) -> bool:
    present = job.status.conditions
    return conditions.is_true(present, COMPLETE) or conditions.is_true(present, FAILED)


def verdict_on(present: Conditions) -> JobCondition | None:
    """The condition that says how the Job is to end, if that is settled."""
    for outcome in (FAILURE_TARGET, SUCCESS_MET):
        condition = conditions.find(present, outcome)
        if condition is not None and condition.status == "True":
            return condition
    return None


def judged(job: Job, active: Sequence[Pod], tally: Tally, now: float) -> Conditions:
    """The conditions of the Job, with a verdict if there is one now."""
    present = job.status.conditions
    if verdict_on(present) is not None:
        return present
    for outcome, (reason, message) in (
        (FAILURE_TARGET, _failure(job, active, tally, now)),
        (SUCCESS_MET, _success(job, active, tally)),
    ):
        if reason:
            at = stamp(now)
            return conditions.put(present, JobCondition(outcome, "True", reason, message, at, at))
    return present


def _failure(job: Job, active: Sequence[Pod], tally: Tally, now: float) -> tuple[str, str]:
    spec = job.spec
    if tally.fatal:
        return "PodFailurePolicy", tally.fatal
    if tally.all_failed > spec.backoff_limit or _restarted_too_often(job, active):
        message = "Job has reached the specified backoff limit"
        return "BackoffLimitExceeded", message
    if not spec.suspend and deadline(job, job.status.start_time, now) == 0:
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


def _success(job: Job, active: Sequence[Pod], tally: Tally) -> tuple[str, str]:
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


def deadline(job: Job, start: datetime | None, now: float) -> float | None:
    """Seconds until the Job has taken too long; None where it may take any time."""
    limit = job.spec.active_deadline_seconds
    if limit is None or start is None:
        return None
    return max(0.0, seconds(start) + limit - now)
