"""Jobs that fail, hang or never start. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kvestigate.health.cluster import Cluster, condition, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import how_it_ended, logs, quoted, since, subject
from kvestigate.health.references import KINDS, missing
from kvestigate.health.rule import rule
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import Pod
from kvestigate.snapshot.workloads import Job

_MEANINGS = {
    "BackoffLimitExceeded": "its pods failed more often than backoffLimit allows",
    "DeadlineExceeded": "it ran longer than its activeDeadlineSeconds",
    "PodFailurePolicy": "a pod failed in a way that its podFailurePolicy does not retry",
    "MaxFailedIndexesExceeded": "more indexes failed than maxFailedIndexes allows",
    "FailedIndexes": "some of its indexes failed",
}
_INDEXES = 60
"""Characters of a list of indexes that are quoted."""
_JOB_PATIENCE = timedelta(minutes=1)
"""A controller creates pods, and a helper container ends after the main one, within seconds."""


@rule("job-failed", "A Job has failed.", listings.JOBS, listings.PODS, uses=(listings.CRON_JOBS,))
def failed(cluster: Cluster) -> Iterator[Fault]:
    pods = _pods_of_jobs(cluster)
    outdated = _outdated(cluster)
    for job in cluster.of(listings.JOBS):
        own = subject_of("Job", job.metadata)
        ending = condition(job.status.conditions, "Failed")
        if ending is None or ending.status != "True":
            ending = condition(job.status.conditions, "FailureTarget")
        if ending is None or ending.status != "True" or own in outdated:
            continue
        last = _last_end(pods.get(own, ()))
        meaning = _MEANINGS.get(ending.reason, "")
        indexes = job.status.failed_indexes[:_INDEXES]
        begun, message = ending.last_transition_time, quoted(ending.message)
        yield Fault(
            severity=Severity.CRITICAL,
            subject=own,
            evidence=f"{ending.reason}{since(begun)}: {message}"
            + (f"; {meaning}" if meaning else "")
            + (f"; failed indexes: {indexes}" if indexes else "")
            + (f"; last failed pod: {last}" if last else ""),
            why="Kubernetes does not retry this Job.",
            command=f"kvestigate logs job/{own.name} -n {own.namespace}",
            since=begun,
            causes=tuple(subject(pod) for pod in pods.get(own, ())),
        )


def _outdated(cluster: Cluster) -> set[Subject]:
    """Jobs of CronJobs that a newer Job has made good: all but the last failed one."""
    newest: dict[tuple[str, str], Job] = {}
    jobs = sorted(cluster.of(listings.JOBS), key=made)
    outdated: set[Subject] = set()
    for job in jobs:
        for owner in job.metadata.owner_references:
            if owner.controller and owner.kind == "CronJob" and has_ended(job):
                key = (job.metadata.namespace, owner.name)
                if key in newest:
                    outdated.add(subject_of("Job", newest[key].metadata))
                newest[key] = job
    return outdated


def made(job: Job) -> float:
    created = job.metadata.creation_timestamp
    return created.timestamp() if created else 0.0


def has_ended(job: Job) -> bool:
    return any(
        one.type in ("Complete", "Failed") and one.status == "True" for one in job.status.conditions
    )


def _pods_of_jobs(cluster: Cluster) -> dict[Subject, list[Pod]]:
    pods: dict[Subject, list[Pod]] = {}
    for pod in cluster.of(listings.PODS):
        for owner in pod.metadata.owner_references:
            if owner.kind == "Job":
                job = Subject("Job", owner.name, pod.metadata.namespace)
                pods.setdefault(job, []).append(pod)
    return pods


def _last_end(pods: list[Pod] | tuple[Pod, ...]) -> str:
    """How the last of the pods that failed ended."""
    ends = [ending for pod in pods if pod.status.phase == "Failed" and (ending := _end(pod))]
    return ends[-1] if ends else ""


def _end(pod: Pod) -> str:
    for status in pod.status.all_statuses:
        ended = status.state.terminated
        if ended is not None and ended.exit_code:
            return f"container {status.name}: {how_it_ended(ended)}"
    return pod.status.reason


@rule("job-failing", "The pods of a Job fail; it retries.", listings.JOBS, listings.PODS)
def failing(cluster: Cluster) -> Iterator[Fault]:
    pods = _pods_of_jobs(cluster)
    for job in cluster.of(listings.JOBS):
        own = subject_of("Job", job.metadata)
        status = job.status
        if has_ended(job) or job.spec.suspend or not status.failed or status.succeeded:
            continue
        if condition(status.conditions, "FailureTarget") is not None:
            continue
        last = _last_end(pods.get(own, ()))
        yield Fault(
            severity=Severity.WARNING,
            subject=own,
            evidence=f"{counted(status.failed, 'pod')} failed{since(status.start_time)}, none "
            f"succeeded (backoffLimit {job.spec.backoff_limit})"
            + (f"; last failed pod: {last}" if last else "")
            + ".",
            why="The Job fails for good when its backoffLimit is reached.",
            command=f"kvestigate logs job/{own.name} -n {own.namespace}",
            since=status.start_time,
            causes=tuple(subject(pod) for pod in pods.get(own, ())),
        )


@rule(
    "job-stuck",
    "A Job does not make progress.",
    listings.JOBS,
    listings.PODS,
    uses=tuple(KINDS.values()),
)
def stuck(cluster: Cluster) -> Iterator[Fault]:
    pods = _pods_of_jobs(cluster)
    for job in cluster.of(listings.JOBS):
        own = subject_of("Job", job.metadata)
        if has_ended(job) or job.spec.suspend or job.metadata.deletion_timestamp:
            continue
        alive = [pod for pod in pods.get(own, ()) if not pod.finished]
        for pod in alive:
            yield from _held_open(cluster, own, pod)
        begun = job.status.start_time or job.metadata.creation_timestamp
        idle = not alive and not job.status.failed and not job.status.succeeded
        if idle and job.spec.parallelism and cluster.settled(begun, _JOB_PATIENCE):
            yield Fault(
                severity=Severity.CRITICAL,
                subject=own,
                evidence=f"The Job has had no pods{since(begun)}, and is neither suspended nor "
                "finished.",
                why="The Job controller has not created its pods.",
                command=f"kvestigate describe job {own.name} -n {own.namespace}",
                since=begun,
                causes=tuple(
                    reference.subject
                    for reference in missing(cluster, job.spec.template.spec, own.namespace)
                    if reference.needed
                ),
            )


def _held_open(cluster: Cluster, job: Subject, pod: Pod) -> Iterator[Fault]:
    """A pod whose work is done while another of its containers still runs."""
    statuses = pod.status.container_statuses
    done = [
        status
        for status in statuses
        if status.state.terminated is not None and not status.state.terminated.exit_code
    ]
    running = [status.name for status in statuses if status.state.running is not None]
    for status in done[:1]:
        state = status.state.terminated
        finished = state.finished_at if state is not None else None
        if running and cluster.settled(finished, _JOB_PATIENCE):
            yield Fault(
                severity=Severity.WARNING,
                subject=job,
                evidence=f"Pod {pod.metadata.name}: container {status.name} has succeeded"
                f"{since(finished)}, but container {', '.join(running)} still runs.",
                why="A Job is complete when all containers of its pod have ended; a helper "
                "container belongs in initContainers with restartPolicy Always.",
                command=logs(pod, running[0], previous=False),
                since=finished,
            )


RULES = (failed, failing, stuck)
