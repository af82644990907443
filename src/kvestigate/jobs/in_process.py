"""The launcher that works on a cluster directly; the cluster's API holds all state."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from kvestigate.aio.backoff import Backoff
from kvestigate.aio.groups import one_failure
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import Forbidden, NotFound
from kvestigate.jobs import answers
from kvestigate.jobs.accounts import book, records
from kvestigate.jobs.accounts.quotas import Quotas
from kvestigate.jobs.answers import Explanation
from kvestigate.jobs.files import staging
from kvestigate.jobs.interface import (
    Call,
    ExecRequest,
    Launcher,
    ListRequest,
    LogRequest,
    Nothing,
    OneTask,
    SubmitRequest,
)
from kvestigate.jobs.running import log_lines, reaching, watching
from kvestigate.jobs.running.evidence import evidence
from kvestigate.jobs.running.explain import explain
from kvestigate.jobs.running.keeping import JOBS, keep_quietly, utc_now
from kvestigate.jobs.running.submitting import delete_job, prepare, start
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.compile import Submission, compile_companions, compile_jobs
from kvestigate.jobs.tasks.ids import is_id
from kvestigate.jobs.tasks.pieces import files_of
from kvestigate.jobs.tasks.statuses import TaskJob, task_status, task_statuses
from kvestigate.jobs.users import Caller, Role, User
from kvestigate.jobs.volumes import claims, contents
from kvestigate.render.human import counted

if TYPE_CHECKING:
    from kvestigate.client.streams import Session

A = TypeVar("A")

_AT_ONCE = 8
_RETURN_ATTEMPTS = 12


class InProcess(Launcher):
    """A `Launcher` that talks to the cluster itself."""

    def __init__(
        self,
        api: Api,
        user: User,
        *,
        role: Role = Role.ADMIN,
        quotas: Quotas | None = None,
        kept: bool = False,
    ) -> None:
        self._api = api
        self._user = user
        self._role = role
        """ADMIN for the owner of a kubeconfig, who may do whatever the kubeconfig allows."""
        self._quotas = quotas
        """None: the quotas in the cluster's ConfigMap, if it exists."""
        self._kept = kept
        """Whether a `Keeper` runs in this process and ends broken tasks."""
        self._handlers: Mapping[Call[..., Any], Callable[[Any], Awaitable[Any]]] = {
            Launcher.whoami: self._whoami,
            Launcher.submit: self._submit,
            Launcher.plan: self._plan,
            Launcher.stop_all: self._stop_all,
            Launcher.list_tasks: self._list_tasks,
            Launcher.history: self._history,
            Launcher.task: self._task,
            Launcher.why: self._why,
            Launcher.endpoint: self._endpoint,
            Launcher.stop: self._stop_one,
            Launcher.missing_pieces: partial(staging.missing, api, user),
            Launcher.create_volume: partial(claims.create, api, user),
            Launcher.list_volumes: self._list_volumes,
            Launcher.volume: partial(claims.status, api, user),
            Launcher.resize_volume: partial(claims.resize, api, user),
            Launcher.volume_files: partial(contents.list_files, api, user),
            Launcher.delete_volume: partial(claims.delete, api, user),
        }

    async def ask(self, call: Call[..., A], input: Any) -> A:
        answer: A = await self._handlers[call](input)
        return answer

    async def _whoami(self, _: Nothing) -> answers.WhoAmI:
        return answers.WhoAmI(self._user.name, self._role.value)

    async def _prepared(self, request: SubmitRequest) -> Submission:
        files = files_of(request.files, request.piece or ())
        caller = Caller(self._user, self._role)
        return await prepare(self._api, caller, request.task, files, strict=request.strict)

    async def _plan(self, request: SubmitRequest) -> answers.PlanResponse:
        submission = await self._prepared(request)
        made = [*compile_companions(submission), *compile_jobs(submission)]
        for manifest in made:
            if manifest["kind"] == "Secret":
                manifest["stringData"] = dict.fromkeys(manifest["stringData"], "...")
        return answers.PlanResponse(tuple(made), submission.placement.ignored)

    async def _submit(self, request: SubmitRequest) -> answers.TaskSubmitResponse:
        submission = await self._prepared(request)
        quotas = self._quotas
        if quotas is None:
            quotas = await book.cluster_quotas(self._api)
        await start(self._api, submission, quotas)
        lines = [f"Task submitted successfully with ID: {submission.task_id}"]
        lines += [f"ignored here: {field}" for field in submission.placement.ignored]
        message = "\n".join(lines)
        return answers.TaskSubmitResponse(submission.task_id, "submitted", message)

    async def _list_tasks(self, request: ListRequest) -> answers.TaskListResponse:
        return answers.TaskListResponse(tuple(task_statuses(await self._jobs(request.all_users))))

    async def _history(self, request: ListRequest) -> answers.HistoryResponse:
        user = self._whose(request.all_users)
        if not self._kept:
            for jobs in _by_task(await self._jobs(request.all_users)).values():
                await keep_quietly(self._api, jobs)
        return answers.HistoryResponse(tuple(await book.history(self._api, user)))

    async def _task(self, request: OneTask) -> answers.TaskStatus:
        return task_status(await self._kept_jobs(request.task_id))

    async def watch(self, task_id: str) -> AsyncGenerator[answers.TaskView, None]:
        jobs = await self._jobs_of(task_id)
        async with aclosing(watching.views(self._api, jobs, keeps=not self._kept)) as views:
            async for view in views:
                yield view

    async def _why(self, request: OneTask) -> Explanation:
        return explain(await evidence(self._api, await self._kept_jobs(request.task_id)))

    async def _endpoint(self, request: OneTask) -> answers.EndpointResponse:
        await self._jobs_of(request.task_id)
        return await reaching.endpoints(self._api, request.task_id)

    async def _stop_one(self, request: OneTask) -> answers.TaskStopResponse:
        await self._stop(await self._jobs_of(request.task_id))
        message = f"Task {request.task_id} stopped successfully"
        return answers.TaskStopResponse(request.task_id, "stopped", message)

    async def _stop_all(self, request: ListRequest) -> answers.TaskStopAllResponse:
        unfinished = [
            jobs
            for jobs in _by_task(await self._jobs(request.all_users)).values()
            if not records.finished(task_status(jobs))
        ]
        await self._stop([job for jobs in unfinished for job in jobs])
        count = len(unfinished)
        return answers.TaskStopAllResponse(count, "stopped", f"Stopped {counted(count, 'task')}")

    async def logs(self, task_id: str, request: LogRequest) -> AsyncGenerator[bytes, None]:
        jobs = await self._jobs_of(task_id)
        # Who follows the log is there while the task runs, and can end it if its gang breaks.
        keeping = request.follow and not self._kept
        beside = asyncio.ensure_future(self._keep(jobs)) if keeping else None
        try:
            while jobs:
                async with aclosing(log_lines.task_lines(self._api, jobs, request)) as lines:
                    async for line in lines:
                        yield line
                jobs = await self._restarted(task_id, jobs) if request.follow else []
        finally:
            if beside is not None:
                beside.cancel()
                await asyncio.wait({beside})

    async def _restarted(self, task_id: str, before: Sequence[TaskJob]) -> list[TaskJob]:
        """The jobs in place of those before, if the task was started again; else none."""
        old = {job.metadata.uid for job in before}
        backoff = Backoff(initial=0.1, cap=1.0)
        for _ in range(_RETURN_ATTEMPTS):
            try:
                jobs = await self._jobs_of(task_id)
                return jobs if old.isdisjoint(job.metadata.uid for job in jobs) else []
            except NotFound:
                # Between the old jobs and the new ones, or it was stopped.
                past = await book.history(self._api, self._user)
                if not any(task.task_id == task_id and not task.ended_at for task in past):
                    return []
            await asyncio.sleep(backoff.next())
        return []

    async def session(self, task_id: str, request: ExecRequest) -> Session:
        return await reaching.session(self._api, await self._jobs_of(task_id), request)

    async def put_piece(self, digest: str, content: bytes) -> None:
        await staging.put(self._api, self._user, digest, content)

    async def _list_volumes(self, request: ListRequest) -> answers.VolumeListResponse:
        return await claims.list_all(self._api, self._whose(request.all_users))

    async def _keep(self, jobs: Sequence[TaskJob]) -> None:
        async with aclosing(watching.views(self._api, jobs, keeps=True)) as views:
            async for _ in views:
                pass

    def _whose(self, all_users: bool) -> User | None:
        """The user whose objects are selected; None for all users."""
        if not all_users:
            return self._user
        if self._role is not Role.ADMIN:
            raise Forbidden(
                f"all_users is for administrators; {self._user.name} is not one",
                hint="omit --all-users to see your own",
            )
        return None

    async def _jobs(self, all_users: bool) -> list[TaskJob]:
        return await self._select(self._whose(all_users))

    async def _jobs_of(self, task_id: str) -> list[TaskJob]:
        jobs: list[TaskJob] = []
        if is_id(task_id):
            exact = {labels.TASK_ID: task_id}
            jobs = await self._select(self._user, **exact)
        if not jobs:
            raise NotFound(
                f"Task {task_id} not found",
                hint="`k8s-cli jobs list` shows your tasks, `k8s-cli jobs history` also past ones",
            )
        return jobs

    async def _kept_jobs(self, task_id: str) -> list[TaskJob]:
        jobs = await self._jobs_of(task_id)
        if not self._kept:
            await keep_quietly(self._api, jobs)
        return jobs

    async def _select(self, user: User | None, **exact: str) -> list[TaskJob]:
        selector = labels.labelled(labels.TASK, user, **exact)
        selection = Selection(self._api.namespace, labels=selector)
        jobs = await self._api.list(JOBS, selection, type=TaskJob)
        return [
            job
            for job in jobs.items
            if job.metadata.deletion_timestamp is None and labels.belongs(job.metadata.labels, user)
        ]

    async def _stop(self, jobs: Sequence[TaskJob]) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def delete(job: TaskJob) -> None:
            async with gate:
                await delete_job(self._api, job.metadata.name)

        with one_failure():
            async with asyncio.TaskGroup() as tasks:
                for job in jobs:
                    tasks.create_task(delete(job))
        await self._note_stopped(jobs)

    async def _note_stopped(self, jobs: Sequence[TaskJob]) -> None:
        """Record the stopped tasks; a task that had ended before keeps its result."""
        ends = {
            task_id: task.status.value if records.finished(task) else "stopped"
            for task_id, members in _by_task(jobs).items()
            for task in [task_status(members)]
        }
        now = answers.stamp(utc_now())

        def change(task_id: str, record: records.Record) -> records.Record | None:
            end = ends.get(task_id)
            return None if end is None else records.ended(record, end, now)

        for owner in {job.metadata.labels.get(labels.OWNER, "") for job in jobs} - {""}:
            try:
                await book.settle(self._api, owner, change)
            except Forbidden:
                return


def _by_task(jobs: Iterable[TaskJob]) -> dict[str, list[TaskJob]]:
    by_task: dict[str, list[TaskJob]] = defaultdict(list)
    for job in jobs:
        by_task[job.metadata.labels.get(labels.TASK_ID, "")].append(job)
    return by_task
