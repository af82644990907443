"""CronJobs that fail, miss their times or never come. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from kvestigate.errors import InputError
from kvestigate.health.cluster import Cluster, condition, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import at, quoted, sentence, since
from kvestigate.health.rule import rule
from kvestigate.health.rules.jobs import has_ended, made
from kvestigate.kube import cron
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.workloads import CronJob

_RUN_GRACE = timedelta(minutes=5)
_ZONE_GRACE = timedelta(hours=14)
"""Without `timeZone` a schedule is in the local time of the controller, which nobody knows."""
_MANY_ACTIVE = 5
_MISSED = ("MissSchedule", "TooManyMissedTimes", "FailedNeedsStart")
_UNREADABLE = ("UnparseableSchedule", "UnparsableSchedule", "InvalidSchedule", "UnknownTimeZone")
_WIDEST = timedelta(minutes=40)


@rule("cronjob-failing", "The last run of a CronJob failed.", listings.CRON_JOBS, listings.JOBS)
def failing_runs(cluster: Cluster) -> Iterator[Fault]:
    newest = {
        (job.metadata.namespace, owner.name): job
        for job in sorted(cluster.of(listings.JOBS), key=made)
        if has_ended(job)
        for owner in job.metadata.owner_references
        if owner.controller and owner.kind == "CronJob"
    }
    for cron_job in cluster.of(listings.CRON_JOBS):
        own = subject_of("CronJob", cron_job.metadata)
        job = newest.get((own.namespace, own.name))
        ending = condition(job.status.conditions, "Failed") if job is not None else None
        if job is None or ending is None or cron_job.spec.suspend:
            continue
        good = cron_job.status.last_successful_time
        message = sentence(quoted(ending.message))
        yield Fault(
            severity=Severity.WARNING,
            subject=own,
            evidence=f"The last run, Job {job.metadata.name}, failed"
            f"{since(ending.last_transition_time)}: {ending.reason}: {message} "
            + (f"The last success was at {at(good)}." if good else "No run has succeeded."),
            why="What the CronJob does has not been done since its last success.",
            command=f"kvestigate logs job/{job.metadata.name} -n {own.namespace}",
            since=ending.last_transition_time,
            causes=(subject_of("Job", job.metadata),),
        )


@rule("cronjob-schedule", "The schedule of a CronJob never comes.", listings.CRON_JOBS)
def bad_schedules(cluster: Cluster) -> Iterator[Fault]:
    for cron_job in cluster.of(listings.CRON_JOBS):
        own = subject_of("CronJob", cron_job.metadata)
        if cron_job.spec.suspend:
            continue
        problem = _problem(cluster, cron_job)
        if problem:
            yield Fault(
                severity=Severity.CRITICAL,
                subject=own,
                evidence=sentence(problem),
                why="The CronJob never creates a Job.",
                command=f"kvestigate describe cronjob {own.name} -n {own.namespace}",
                since=cron_job.metadata.creation_timestamp,
            )


def _problem(cluster: Cluster, cron_job: CronJob) -> str:
    """Why the schedule never comes; empty if it does."""
    spec = cron_job.spec
    try:
        schedule = cron.parse(_without_zone(spec.schedule))
    except InputError as error:
        return f'schedule "{spec.schedule}" cannot be read: {error.message}'
    if _zone(spec.time_zone) is None:
        return f'time zone "{spec.time_zone}" does not exist'
    if isinstance(schedule, cron.Cron) and cron.last_before(schedule, cluster.now) is None:
        return f'schedule "{spec.schedule}" matches no date'
    events = cluster.events(subject_of("CronJob", cron_job.metadata), *_UNREADABLE)
    return f"{events[0].reason}: {quoted(events[0].message)}" if events else ""


def _without_zone(schedule: str) -> str:
    """A schedule may begin with `TZ=Europe/Berlin`, which old API servers took."""
    first, _, rest = schedule.partition(" ")
    return rest if first.startswith(("TZ=", "CRON_TZ=")) else schedule


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, OSError, ValueError):  # unknown, or not a name at all
        return None


@dataclass(frozen=True, slots=True)
class _Run:
    """The latest time at which a CronJob should have created a Job, and did not."""

    due: datetime
    last: datetime | None


@rule(
    "cronjob-missed",
    "A CronJob does not run on its schedule.",
    listings.CRON_JOBS,
    uses=(listings.JOBS, listings.EVENTS),
)
def missed_runs(cluster: Cluster) -> Iterator[Fault]:
    for cron_job in cluster.of(listings.CRON_JOBS):
        if cron_job.spec.suspend or cron_job.metadata.deletion_timestamp:
            continue
        run = _missed(cluster, cron_job)
        events = cluster.events(subject_of("CronJob", cron_job.metadata), *_MISSED)
        told = next((one for one in events if not cluster.settled(one.last_seen, _WIDEST)), None)
        held = _holding(cluster, cron_job)
        if run is None and told is None:
            continue
        own = subject_of("CronJob", cron_job.metadata)
        last = run.last if run is not None else cron_job.status.last_schedule_time
        yield Fault(
            severity=Severity.CRITICAL,
            subject=own,
            evidence=_missed_evidence(cron_job, run, quoted(told.message) if told else "", held),
            why="What the CronJob does has not been done since its last run.",
            command=f"kvestigate describe cronjob {own.name} -n {own.namespace}",
            since=last,
            causes=(held,) if held is not None else (),
        )


def _missed_evidence(
    cron_job: CronJob, run: _Run | None, message: str, held: Subject | None
) -> str:
    last = cron_job.status.last_schedule_time
    before = f"the last run began at {at(last)}" if last else "it has never run"
    text = f'Schedule "{cron_job.spec.schedule}" was missed'
    if run is not None:
        text += f" at {at(run.due)}"
    text += f"; {before}"
    if held is not None:
        text += f"; {held} is still active, and concurrencyPolicy Forbid allows no second Job"
    elif message:
        text += f": {message}"
    elif cron_job.spec.starting_deadline_seconds is not None:
        text += f"; startingDeadlineSeconds is {cron_job.spec.starting_deadline_seconds}"
    else:
        text += "; the CronJob controller has not created a Job"
    return sentence(text)


def _missed(cluster: Cluster, cron_job: CronJob) -> _Run | None:
    last = cron_job.status.last_schedule_time
    since_when = last or cron_job.metadata.creation_timestamp
    zone = _zone(cron_job.spec.time_zone)
    try:
        schedule = cron.parse(_without_zone(cron_job.spec.schedule))
    except InputError:
        return None
    if since_when is None or zone is None:
        return None
    if isinstance(schedule, cron.Every):
        due = since_when + schedule.period
        return _Run(due, last) if cluster.settled(due, _RUN_GRACE) else None
    unsure = not cron_job.spec.time_zone and len(schedule.hours) < 24
    grace = _ZONE_GRACE if unsure else _RUN_GRACE
    local = (cluster.now - grace).astimezone(zone)
    latest = cron.last_before(schedule, local)
    slack = grace if unsure else timedelta()
    if latest is None or latest.astimezone(UTC) <= since_when + slack:
        return None
    return _Run(latest.astimezone(UTC), last)


def _holding(cluster: Cluster, cron_job: CronJob) -> Subject | None:
    """The Job that keeps the next one from starting."""
    if cron_job.spec.concurrency_policy != "Forbid" or not cron_job.status.active:
        return None
    return Subject("Job", cron_job.status.active[0].name, cron_job.metadata.namespace)


@rule("cronjob-piling-up", "A CronJob has many active Jobs.", listings.CRON_JOBS)
def piling_up(cluster: Cluster) -> Iterator[Fault]:
    for cron_job in cluster.of(listings.CRON_JOBS):
        active = cron_job.status.active
        if len(active) < _MANY_ACTIVE or cron_job.spec.concurrency_policy != "Allow":
            continue
        own = subject_of("CronJob", cron_job.metadata)
        names = ", ".join(job.name for job in active[:3])
        yield Fault(
            severity=Severity.WARNING,
            subject=own,
            evidence=f"{len(active)} Jobs are active at the same time ({names}, ...): they take "
            f'longer than the schedule "{cron_job.spec.schedule}" leaves, and concurrencyPolicy '
            "Allow starts more.",
            why="Jobs pile up until the cluster is full.",
            command=f"kubectl -n {own.namespace} get jobs",
        )


RULES = (failing_runs, bad_schedules, missed_runs, piling_up)
