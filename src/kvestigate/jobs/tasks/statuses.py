"""The status of tasks, from the jobs of the cluster. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from kvestigate.jobs.answers import State, TaskListResponse, TaskMetadata, TaskStatus, stamp
from kvestigate.jobs.tasks import labels
from kvestigate.kube.views.meta import Metadata, View
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.workloads import Job, JobStatus

CONTAINER = "task"
_JOB_NAME = "job-name"


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
    statuses = [task_status(members) for members in by_task.values()]
    return sorted(statuses, key=lambda task: (task.created_at, task.task_id), reverse=True)


def task_status(jobs: Sequence[TaskJob]) -> TaskStatus:
    """The status of the one task that all `jobs` belong to."""
    ordered = sorted(jobs, key=node_index) if len(jobs) > 1 else jobs
    # A list of thousands of tasks spends its time here: plain counts, no Counter of enums.
    completed = failed = running = 0
    for job in ordered:
        state = node_state(job)
        completed += state is State.COMPLETED
        failed += state is State.FAILED
        running += state is State.RUNNING
    first = ordered[0].metadata
    annotations = first.annotations
    count = int(annotations.get(labels.NUM_NODES) or len(ordered))
    common = first.name.removesuffix(f"-node-{node_index(ordered[0])}") if count > 1 else first.name
    if failed:
        status = State.FAILED
    elif completed >= len(ordered):
        status = State.COMPLETED
    else:
        status = State.RUNNING if running or completed else State.PENDING
    created_at = annotations.get(labels.SUBMITTED) or stamp(_earliest(ordered))
    return TaskStatus(
        task_id=first.labels.get(labels.TASK_ID, ""),
        name=annotations.get(labels.EXACT_NAME) or first.labels.get(labels.TASK_NAME, ""),
        status=status,
        created_at=created_at,
        # Kubernetes counts whole seconds: what it notes first seems to be before the submission.
        updated_at=max(created_at, stamp(_latest(ordered))),
        username=first.labels.get(labels.USERNAME, ""),
        metadata=TaskMetadata(
            job_name=common,
            namespace=first.namespace,
            num_nodes=count,
            node_jobs=tuple([job.metadata.name for job in ordered]),
            succeeded_nodes=completed,
            failed_nodes=failed,
            running_nodes=running,
            pending_nodes=len(ordered) - completed - failed - running,
        ),
    )


def queued(listed: TaskListResponse) -> TaskListResponse:
    """The tasks that have not ended, in the order of their submission."""
    unfinished = [task for task in listed.tasks if task.status in (State.PENDING, State.RUNNING)]
    unfinished.sort(key=lambda task: (task.created_at, task.task_id))
    return TaskListResponse(tuple(unfinished))


def node_index(part: TaskJob | Pod) -> int:
    """The index of the task's node that a job or pod belongs to."""
    own = part.metadata.labels
    text = own.get(labels.NODE_INDEX, "")
    if not text:  # a pod of a job that another tool made
        _, _, text = own.get(_JOB_NAME, "").rpartition("-node-")
    return int(text) if text.isdecimal() and len(text) < 7 else 0


def is_ours(jobs: Iterable[TaskJob]) -> bool:
    """Whether kvestigate made the jobs; another tool's are shown and stopped, no more."""
    return all(labels.NUM_NODES in job.metadata.annotations for job in jobs)


def pod_selector(jobs: Sequence[TaskJob]) -> str:
    """The selector for the pods of the one task that all `jobs` belong to."""
    if is_ours(jobs):
        return f"{labels.TASK_ID}={jobs[0].metadata.labels[labels.TASK_ID]}"
    return f"{_JOB_NAME} in ({','.join(job.metadata.name for job in jobs)})"


def task_container(pod: Pod) -> str:
    """The container of a task's pod: ours has a fixed name, another tool's is the first."""
    names = [container.name for container in pod.spec.containers]
    return names[0] if names and CONTAINER not in names else CONTAINER


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


def _earliest(jobs: Iterable[TaskJob]) -> datetime | None:
    times = [when for job in jobs if (when := job.metadata.creation_timestamp) is not None]
    return min(times, default=None)


def _latest(jobs: Iterable[TaskJob]) -> datetime | None:
    """When anything happened last."""
    latest: datetime | None = None
    for job in jobs:
        status = job.status
        for when in (job.metadata.creation_timestamp, status.start_time, status.completion_time):
            if when is not None and (latest is None or when > latest):
                latest = when
        for condition in status.conditions:
            when = condition.last_transition_time
            if when is not None and (latest is None or when > latest):
                latest = when
    return latest
