"""CronJobs: make a Job whenever the schedule says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.client.api import Propagation
from kvestigate.client.recorder import NORMAL, WARNING
from kvestigate.cluster.controllers import conditions, owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.jobs import cron
from kvestigate.cluster.controllers.jobs.verdict import COMPLETE, FAILED, is_finished_job
from kvestigate.cluster.controllers.kinds import CRON_JOBS, JOBS
from kvestigate.cluster.controllers.objects import CronJob, CronJobStatus, Job
from kvestigate.cluster.controllers.pods import by_age
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.times import seconds, stamp
from kvestigate.kube.views.meta import ObjectReference

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_TOO_MANY = 100


@dataclass(frozen=True, slots=True)
class Decision:
    status: CronJobStatus
    create: datetime | None = None
    """The time for which a Job is due."""
    replace: tuple[Job, ...] = ()
    """Jobs that have to make room for it."""
    forget: tuple[Job, ...] = ()
    news: tuple[tuple[str, str, str], ...] = ()
    """(type, reason, message)"""
    pause: float | None = None


def decide(cron_job: CronJob, jobs: Sequence[Job], now: float) -> Decision:
    status, news = _observed(cron_job, jobs)
    forget = _beyond_history(cron_job, jobs)
    if cron_job.metadata.deletion_timestamp is not None or cron_job.spec.suspend:
        return Decision(status, forget=forget, news=news)
    try:
        schedule = cron.parse(cron_job.spec.schedule, cron_job.spec.time_zone)
    except errors.InputError as error:
        event = (
            WARNING,
            "UnparseableSchedule",
            f'unparseable schedule: "{cron_job.spec.schedule}" : {error}',
        )
        return Decision(status, forget=forget, news=(*news, event))
    upcoming = schedule.next(stamp(now))
    pause = max(0.1, seconds(upcoming) - now) if upcoming else None
    due, missed = _due(cron_job, schedule, now)
    if missed > _TOO_MANY:
        message = (
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
            "clock skew"
        )
        news += ((WARNING, "TooManyMissedTimes", message),)
    if due is None:
        return Decision(status, forget=forget, news=news, pause=pause)
    limit = cron_job.spec.starting_deadline_seconds
    if limit is not None and due.timestamp() + limit < now:
        when = f"{due:%a, %d %b %Y %H:%M:%S} +0000"
        event = (WARNING, "MissSchedule", f"Missed scheduled time to start a job: {when}")
        return Decision(status, forget=forget, news=(*news, event), pause=pause)
    active = [job for job in jobs if not is_finished_job(job)]
    policy = cron_job.spec.concurrency_policy
    if active and policy == "Forbid":
        message = "Not starting job because prior execution is running and concurrency policy is"
        event = (NORMAL, "JobAlreadyActive", f"{message} Forbid")
        return Decision(status, forget=forget, news=(*news, event), pause=pause)
    replace = tuple(active) if policy == "Replace" else ()
    return Decision(status, due, replace, forget, news, pause)


def _due(
    cron_job: CronJob, schedule: cron.Schedule | cron.Every, now: float
) -> tuple[datetime | None, int]:
    """The latest time that has passed without a Job, and how many there were, at most 101."""
    last = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp
    since = seconds(last, now)
    limit = cron_job.spec.starting_deadline_seconds
    if limit is not None:
        since = max(since, now - limit)
    start, end = stamp(since), stamp(now)
    if start >= end:
        return None, 0
    missed, at = 0, schedule.next(start)
    first = at
    while at is not None and at <= end and missed <= _TOO_MANY:
        first, missed = at, missed + 1
        at = schedule.next(at)
    if not missed or first is None:
        return None, 0
    return (first if missed <= _TOO_MANY else _latest(schedule, first, end)), missed


def _latest(schedule: cron.Schedule | cron.Every, known: datetime, end: datetime) -> datetime:
    """The last time up to `end`, found from its end: there may be years of minutes between."""
    window = timedelta(minutes=2)
    while window < end - known:
        at = schedule.next(end - window)
        if at is not None and at <= end:
            known = at
            break
        window *= 2
    while (at := schedule.next(known)) is not None and at <= end:
        known = at
    return known


def _observed(
    cron_job: CronJob, jobs: Sequence[Job]
) -> tuple[CronJobStatus, tuple[tuple[str, str, str], ...]]:
    """The status as the Jobs have it, and what is new in it."""
    before = {reference.uid for reference in cron_job.status.active}
    active = tuple(_reference(job) for job in sorted(jobs, key=by_age) if not is_finished_job(job))
    news = []
    last = cron_job.status.last_successful_time
    for job in jobs:
        if not is_finished_job(job):
            continue
        good = conditions.is_true(job.status.conditions, COMPLETE)
        if good and job.status.completion_time is not None:
            last = max(last or job.status.completion_time, job.status.completion_time)
        if job.metadata.uid in before:
            how = COMPLETE if good else FAILED
            message = f"Saw completed job: {job.metadata.name}, condition: {how}"
            news.append((NORMAL, "SawCompletedJob", message))
    status = CronJobStatus(active, cron_job.status.last_schedule_time, last)
    return status, tuple(news)


def _reference(job: Job) -> ObjectReference:
    return ObjectReference(
        api_version=JOBS.resource.api_version,
        kind=JOBS.resource.kind,
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        uid=job.metadata.uid,
    )


def _beyond_history(cron_job: CronJob, jobs: Sequence[Job]) -> tuple[Job, ...]:
    spec = cron_job.spec
    limits = {COMPLETE: spec.successful_jobs_history_limit, FAILED: spec.failed_jobs_history_limit}
    surplus: list[Job] = []
    for outcome, limit in limits.items():
        done = sorted(
            (job for job in jobs if conditions.is_true(job.status.conditions, outcome)),
            key=by_age,
        )
        surplus += done[: max(0, len(done) - limit)]
    return tuple(job for job in surplus if job.metadata.deletion_timestamp is None)


def job_of(cron_job: CronJob, due: datetime) -> dict[str, Any]:
    """The Job for a scheduled time; its name makes sure that there is only one."""
    template = cron_job.spec.job_template
    given = template.get("metadata") or {}
    return {
        "apiVersion": JOBS.resource.api_version,
        "kind": JOBS.resource.kind,
        "metadata": {
            "name": f"{cron_job.metadata.name}-{int(due.timestamp()) // 60}",
            "namespace": cron_job.metadata.namespace,
            "labels": dict(given.get("labels") or {}),
            "annotations": {
                **(given.get("annotations") or {}),
                SCHEDULED: due.strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
            "ownerReferences": [owners.controller_reference(CRON_JOBS, cron_job)],
        },
        "spec": template.get("spec") or {},
    }


class CronJobController(Reconciler[CronJob]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, CRON_JOBS)
        self._jobs = context.watch(JOBS, owners.owner_keys(CRON_JOBS, self._objects, lambda _: {}))

    async def _reconcile(self, cron_job: CronJob) -> float | None:
        jobs = self._jobs.find(owners.OWNER, cron_job.metadata.uid)
        decision = decide(cron_job, jobs, self._context.now())
        for level, reason, message in decision.news:
            self._tell(cron_job, reason, message, level)
        for job in (*decision.forget, *decision.replace):
            await self._delete(cron_job, job)
        status = decision.status
        if decision.create is not None:
            status = await self._start(cron_job, decision.create, status)
        await self._put_status(cron_job, status)
        return decision.pause

    async def _delete(self, cron_job: CronJob, job: Job) -> None:
        await self._context.delete(JOBS, job, propagation=Propagation.BACKGROUND)
        self._tell(cron_job, "SuccessfulDelete", f"Deleted job {job.metadata.name}")

    async def _start(
        self, cron_job: CronJob, due: datetime, status: CronJobStatus
    ) -> CronJobStatus:
        body = job_of(cron_job, due)
        try:
            job = await self._context.create(JOBS, body)
        except errors.AlreadyExists:
            # Made before a restart, which lost the note of it.
            return msgspec.structs.replace(status, last_schedule_time=due)
        except errors.KvestigateError as error:
            why = f"Error creating job: {error.message}"
            self._tell(cron_job, "FailedCreate", why, WARNING)
            raise
        self._tell(cron_job, "SuccessfulCreate", f"Created job {job.metadata.name}")
        active = (*status.active, _reference(job))
        return msgspec.structs.replace(status, active=active, last_schedule_time=due)
