"""What somebody has to do for tasks while they run: end a gang that broke, write how it ended.

A server does it for all tasks as they change. Without one, each command that looks at a task
does it for that task. Doing it twice, or by two servers at once, comes to the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.aio.workqueue import WorkQueue
from kvestigate.client.api import PODS, Api, Propagation
from kvestigate.client.cache import Change
from kvestigate.client.call import Selection
from kvestigate.errors import Forbidden, KvestigateError, NotFound
from kvestigate.jobs.accounts import book, records
from kvestigate.jobs.answers import stamp
from kvestigate.jobs.running import gang, restarting
from kvestigate.jobs.running.explain import pod_causes
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.statuses import TaskJob, is_ours, node_index, task_status
from kvestigate.kube import builtins
from kvestigate.kube.views.pods import Pod

JOBS = builtins.resource("jobs.batch")

Now = Callable[[], datetime]

_LOST_SECONDS = 30.0
"""When to look again at a task that the cluster has lost a node of, or that is restarted."""


def utc_now() -> datetime:
    return datetime.now(UTC)


async def keep(api: Api, jobs: Sequence[TaskJob], now: Now = utc_now) -> float | None:
    """End the task or record its end, if due. Returns the seconds until the next check."""
    if not is_ours(jobs):
        return None
    since = await _gathering_since(api, jobs) if gang.partial(jobs) else None
    verdict = gang.judge(jobs, since, now())
    task = task_status(jobs)
    if verdict is not None or task.status == "failed":
        pods = await _pods(api, task.task_id)
        if verdict is not None and verdict.late and not _really_late(verdict, pods):
            return _LOST_SECONDS  # its machine may come back, else its pods are taken from it
        restart = gang.second_chance(jobs, pods, verdict)
        if restart is not None and await restarting.restart(api, jobs, restart, now()):
            return _LOST_SECONDS
        if verdict is not None:
            await _end(api, verdict, pods)
            return None
    elif any(job.status.terminating and not job.status.ready for job in jobs):
        return await _keep_lost(api, jobs, now())
    if records.finished(task):
        await _settle(api, jobs, now)
        return None
    return gang.next_look(jobs, since, now())


async def keep_quietly(api: Api, jobs: Sequence[TaskJob]) -> float | None:
    """Like `keep`, for commands that only read: missing rights are no error."""
    try:
        return await keep(api, jobs)
    except (Forbidden, NotFound):
        return None


class Keeper:
    """Keeps all tasks of a namespace."""

    def __init__(self, api: Api, now: Now = utc_now) -> None:
        self._api = api
        self._now = now
        self._queue: WorkQueue[str] = WorkQueue()
        self._jobs: dict[str, dict[str, TaskJob]] = defaultdict(dict)
        self._settled: set[str] = set()

    async def run(self, ready: Ready[None]) -> None:
        selection = Selection(self._api.namespace, labels=labels.selecting(labels.TASK, None))
        informer = self._api.informer(JOBS, selection, type=TaskJob)
        informer.subscribe(self._changed)
        async with Supervisor("task keeper") as parts:
            await parts.start("jobs", informer.run)
            ready(None)
            while True:
                async with self._queue.work() as task_id:
                    await self._keep(task_id)

    def _changed(self, change: Change[TaskJob]) -> None:
        job = change.new or change.old
        assert job is not None
        task_id = job.metadata.labels.get(labels.TASK_ID, "")
        if change.new is not None:
            self._jobs[task_id][job.metadata.name] = job
        elif len(self._jobs[task_id]) > 1:
            self._jobs[task_id].pop(job.metadata.name, None)
        else:
            self._jobs.pop(task_id, None)
            self._settled.discard(task_id)
        self._queue.add(task_id)

    async def _keep(self, task_id: str) -> None:
        jobs = list(self._jobs.get(task_id, {}).values())
        if not jobs or task_id in self._settled:
            return
        try:
            again = await keep(self._api, jobs, self._now)
        except KvestigateError:
            self._queue.retry(task_id)
            return
        self._queue.forget(task_id)
        if again is not None:
            self._queue.add_after(task_id, again)
        elif records.finished(task_status(jobs)):
            self._settled.add(task_id)


async def _keep_lost(api: Api, jobs: Sequence[TaskJob], now: datetime) -> float:
    """Start a task again whose pod was taken from it and never ends. Returns when to look again."""
    pods = await _pods(api, task_status(jobs).task_id)
    seconds = gang.abandoned(pods, now)
    if seconds is not None and seconds <= 0:
        cause = gang.taken((), [pod for pod in pods if pod.metadata.deletion_timestamp])
        story = f"{cause}; its machine does not answer; all nodes were started again"
        await restarting.restart(api, jobs, gang.Restart(story), now)
    return max(seconds or 0.0, 0.0) + _LOST_SECONDS


def _really_late(verdict: gang.Verdict, pods: Sequence[Pod]) -> bool:
    """Whether a node has never run, or was taken: one that ran may just be out of sight."""
    lost = {node_index(pod) for pod in pods if gang.has_started(pod)}
    taken = gang.taken((), pods)
    return bool(taken) or not lost.issuperset(verdict.late)


async def _pods(api: Api, task_id: str) -> Sequence[Pod]:
    selection = Selection(api.namespace, labels=f"{labels.TASK_ID}={task_id}")
    return (await api.list(PODS, selection, type=Pod)).items


async def _end(api: Api, verdict: gang.Verdict, pods: Sequence[Pod]) -> None:
    reason = verdict.reason
    if verdict.first is not None:
        reason = f"node-{node_index(verdict.first)}: {await _reason(api, verdict.first)}"
        await _annotate(api, verdict.first, reason)
    for job in verdict.victims:
        name = job.metadata.name
        if job.spec.suspend:  # it has no pod, and no deadline counts for it
            await api.delete(JOBS, name, propagation=Propagation.BACKGROUND, type=bytes)
            continue
        change: dict[str, Any] = {"metadata": {"annotations": {labels.REASON: reason}}}
        own = [pod for pod in pods if node_index(pod) == node_index(job)]
        if not await _end_pods(api, own):
            # A job that is past its deadline fails, and its pods are deleted.
            change["spec"] = {"activeDeadlineSeconds": 1}
        await api.patch(JOBS, name, change, namespace=api.namespace, type=bytes)


async def _end_pods(api: Api, pods: Sequence[Pod]) -> bool:
    """End running pods by a deadline of their own: they stay, and so do their logs.

    False if there are none, or if that is forbidden.
    """
    running = [pod for pod in pods if gang.has_started(pod) and pod.status.phase == "Running"]
    try:
        for pod in running:
            change = {"spec": {"activeDeadlineSeconds": 1}}
            await api.patch(PODS, pod.metadata.name, change, namespace=api.namespace, type=bytes)
    except (Forbidden, NotFound):
        return False
    return bool(running)


async def _annotate(api: Api, job: TaskJob, reason: str) -> None:
    if job.metadata.annotations.get(labels.REASON) != reason:
        change = {"metadata": {"annotations": {labels.REASON: reason}}}
        await api.patch(JOBS, job.metadata.name, change, namespace=api.namespace, type=bytes)


async def _settle(api: Api, jobs: Sequence[TaskJob], now: Now) -> None:
    task = task_status(jobs)
    reason = next((text for job in jobs if (text := _noted(job))), "")
    if task.status == "failed" and not reason:
        failed = [job for job in jobs if job.status.failed or job.status.conditions]
        reason = f"node-{node_index(failed[0])}: {await _reason(api, failed[0])}" if failed else ""
    ended_at = task.updated_at or stamp(now())

    def change(task_id: str, record: records.Record) -> records.Record | None:
        if task_id != task.task_id:
            return None
        return records.ended(record, task.status.value, ended_at, reason)

    await book.settle(api, jobs[0].metadata.labels.get(labels.OWNER, ""), change)


def _noted(job: TaskJob) -> str:
    return job.metadata.annotations.get(labels.REASON, "")


async def _reason(api: Api, job: TaskJob) -> str:
    """Why a node failed: the reason of its pod, else of its job."""
    selection = Selection(api.namespace, labels=f"job-name={job.metadata.name}")
    for pod in (await api.list(PODS, selection, type=Pod)).items:
        for cause, _ in pod_causes(pod):
            return cause
    for condition in job.status.conditions:
        if condition.type in ("Failed", "FailureTarget") and condition.status == "True":
            return f"{condition.reason}: {condition.message}".strip(": ")
    return "the job failed without a reason"


async def _gathering_since(api: Api, jobs: Sequence[TaskJob]) -> datetime | None:
    began = [
        state.started_at
        for pod in await _pods(api, jobs[0].metadata.labels.get(labels.TASK_ID, ""))
        for status in pod.status.container_statuses
        for state in (status.state.running, status.state.terminated)
        if state is not None and state.started_at is not None
    ]
    return min(began, default=None)
