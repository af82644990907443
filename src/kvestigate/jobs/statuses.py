"""From the jobs and claims of the cluster to the status of tasks and volumes. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from kvestigate.jobs import labels
from kvestigate.jobs.answers import State, TaskMetadata, TaskStatus, VolumeMetadata, VolumeStatus
from kvestigate.kube.views.meta import Metadata, View
from kvestigate.kube.views.storage import PersistentVolumeClaim
from kvestigate.kube.views.workloads import Job, JobStatus


class _Suspension(View, frozen=True):
    suspend: bool = False


class TaskJob(View, frozen=True):
    """The job of one node, without its pod template: a list of thousands is read for its status."""

    metadata: Metadata = Metadata()
    spec: _Suspension = _Suspension()
    status: JobStatus = JobStatus()


def task_statuses(jobs: Iterable[TaskJob]) -> list[TaskStatus]:
    """The tasks that the jobs belong to, newest first."""
    by_task: dict[str, list[TaskJob]] = defaultdict(list)
    for job in jobs:
        if job.metadata.deletion_timestamp is None:
            by_task[job.metadata.labels.get(labels.TASK_ID, "")].append(job)
    found = [task_status(members) for members in by_task.values()]
    return sorted(found, key=lambda task: (task.created_at, task.task_id), reverse=True)


def task_status(jobs: Sequence[TaskJob]) -> TaskStatus:
    """The status of the one task that all `jobs` belong to."""
    ordered = sorted(jobs, key=node_index)
    states = Counter(node_state(job) for job in ordered)
    first = ordered[0].metadata
    created = [job.metadata.creation_timestamp for job in ordered]
    times = [when for job in ordered for when in _times(job)]
    count = int(first.annotations.get(labels.NUM_NODES) or len(ordered))
    common = first.name.removesuffix(f"-node-{node_index(ordered[0])}") if count > 1 else first.name
    return TaskStatus(
        task_id=first.labels.get(labels.TASK_ID, ""),
        name=first.annotations.get(labels.EXACT_NAME) or first.labels.get(labels.TASK_NAME, ""),
        status=_state(states, len(ordered)),
        created_at=first.annotations.get(labels.SUBMITTED)
        or stamp(min(_known(created), default=None)),
        updated_at=stamp(max(_known(times), default=None)),
        username=first.labels.get(labels.USERNAME, ""),
        metadata=TaskMetadata(
            job_name=common,
            namespace=first.namespace,
            num_nodes=count,
            node_jobs=tuple(job.metadata.name for job in ordered),
            succeeded_nodes=states[State.COMPLETED],
            failed_nodes=states[State.FAILED],
            running_nodes=states[State.RUNNING],
            pending_nodes=states[State.PENDING],
        ),
    )


def node_index(job: TaskJob) -> int:
    text = job.metadata.labels.get(labels.NODE_INDEX, "")
    return int(text) if text.isdecimal() else 0


def node_state(job: TaskJob | Job) -> State:
    for condition in job.status.conditions:
        if condition.status == "True" and condition.type in ("Failed", "FailureTarget"):
            return State.FAILED
        if condition.status == "True" and condition.type in ("Complete", "SuccessCriteriaMet"):
            return State.COMPLETED
    # A pod that has no node yet is active too; a ready one really runs.
    return State.RUNNING if job.status.ready else State.PENDING


def node_ended(job: TaskJob | Job) -> bool:
    return node_state(job) in (State.COMPLETED, State.FAILED)


def volume_status(claim: PersistentVolumeClaim) -> VolumeStatus:
    meta, spec = claim.metadata, claim.spec
    return VolumeStatus(
        volume_id=meta.labels.get(labels.VOLUME_ID, ""),
        name=meta.annotations.get(labels.EXACT_NAME) or meta.labels.get(labels.VOLUME_NAME, ""),
        size=claim.status.capacity.get("storage") or spec.resources.requests.get("storage", ""),
        storage_class=spec.storage_class_name,
        access_modes=spec.access_modes,
        status=claim.status.phase or "Pending",
        created_at=stamp(meta.creation_timestamp),
        username=meta.labels.get(labels.USERNAME, ""),
        metadata=VolumeMetadata(meta.name, meta.namespace),
    )


def stamp(when: datetime | None) -> str:
    """`2025-10-05T12:34:56`, in UTC and without saying so, as the API always had it."""
    return "" if when is None else when.replace(tzinfo=None).isoformat()


def _state(states: Counter[State], count: int) -> State:
    if states[State.FAILED]:
        return State.FAILED
    if states[State.COMPLETED] >= count:
        return State.COMPLETED
    if states[State.RUNNING] or states[State.COMPLETED]:
        return State.RUNNING
    return State.PENDING


def _times(job: TaskJob) -> list[datetime | None]:
    conditions = [condition.last_transition_time for condition in job.status.conditions]
    return [
        job.metadata.creation_timestamp,
        job.status.start_time,
        job.status.completion_time,
        *conditions,
    ]


def _known(times: Iterable[datetime | None]) -> list[datetime]:
    return [when for when in times if when is not None]
