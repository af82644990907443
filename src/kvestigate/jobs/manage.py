"""Tasks on a cluster: submit, list, status, stop. The cluster's API is all there is to know."""

from __future__ import annotations

import asyncio
import re
import secrets
import string
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kvestigate.client.api import Api, Propagation
from kvestigate.client.call import Selection
from kvestigate.errors import InputError, KvestigateError, NotFound
from kvestigate.jobs import answers, labels, logs, volumes
from kvestigate.jobs.archive import Archive, pack
from kvestigate.jobs.compile import Manifest, Submission, compile_companions, compile_jobs
from kvestigate.jobs.explain import Explanation, explain
from kvestigate.jobs.identity import User
from kvestigate.jobs.launcher import LogRequest, VolumeRequest
from kvestigate.jobs.logs import JOBS
from kvestigate.jobs.model import Task
from kvestigate.jobs.parse import parse_task
from kvestigate.jobs.placement import needs_nodes, place
from kvestigate.jobs.status import TaskJob, task_status, task_statuses
from kvestigate.jobs.why import evidence
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.meta import PartialObject

_COMPANIONS = {"Service": builtins.resource("services"), "Secret": builtins.resource("secrets")}
_ALPHABET = string.ascii_lowercase + string.digits
_ID = re.compile(r"[a-z0-9]{8}")
_AT_ONCE = 8


def new_id() -> str:
    """Eight characters that nobody can guess or has had before."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


class InProcess:
    """A `Launcher` that talks to the cluster itself."""

    def __init__(self, api: Api, user: User, *, files: Path | None = None) -> None:
        self._api = api
        self._user = user
        self._files = files
        """The directory of relative paths; None if the files here are not the user's."""

    async def plan(self, document: Mapping[str, Any]) -> list[Manifest]:
        """The exact objects that `submit` would make, but for the values of secrets."""
        submission = await self._submission(document)
        made = [*compile_companions(submission), *compile_jobs(submission)]
        for manifest in made:
            for key in ("stringData", "data"):
                if manifest["kind"] == "Secret" and key in manifest:
                    manifest[key] = dict.fromkeys(manifest[key], "...")
        return made

    async def submit(self, document: Mapping[str, Any]) -> answers.TaskSubmitResponse:
        submission = await self._submission(document)
        await self._create(submission)
        return answers.TaskSubmitResponse(
            submission.task_id,
            "submitted",
            f"Task submitted successfully with ID: {submission.task_id}",
        )

    async def list_tasks(self, *, all_users: bool) -> answers.TaskListResponse:
        return answers.TaskListResponse(tuple(task_statuses(await self._jobs(all_users))))

    async def task(self, task_id: str) -> answers.TaskStatus:
        return task_status(await self._jobs_of(task_id))

    async def why(self, task_id: str) -> Explanation:
        return explain(await evidence(self._api, await self._jobs_of(task_id)))

    async def stop(self, task_id: str) -> answers.TaskStopResponse:
        await self._delete(await self._jobs_of(task_id))
        message = f"Task {task_id} stopped successfully"
        return answers.TaskStopResponse(task_id, "stopped", message)

    async def stop_all(self, *, all_users: bool) -> answers.TaskStopAllResponse:
        jobs = await self._jobs(all_users)
        count = len({job.metadata.labels.get(labels.TASK_ID) for job in jobs})
        await self._delete(jobs)
        return answers.TaskStopAllResponse(count, "stopped", f"Stopped {count} tasks")

    async def logs(self, task_id: str, request: LogRequest) -> AsyncGenerator[bytes, None]:
        jobs = await self._jobs_of(task_id)
        lines = logs.task_lines(self._api, jobs, request)
        try:
            async for line in lines:
                yield line
        finally:
            await lines.aclose()

    async def create_volume(self, request: VolumeRequest) -> answers.VolumeCreateResponse:
        return await volumes.create(self._api, self._user, request, new_id())

    async def list_volumes(self, *, all_users: bool) -> answers.VolumeListResponse:
        return await volumes.list_all(self._api, None if all_users else self._user)

    async def volume(self, volume_id: str) -> answers.VolumeStatus:
        return await volumes.status(self._api, self._user, volume_id)

    async def delete_volume(self, volume_id: str) -> answers.VolumeDeleteResponse:
        return await volumes.delete(self._api, self._user, volume_id)

    async def _submission(self, document: Mapping[str, Any]) -> Submission:
        task = parse_task(document)
        nodes: list[Mapping[str, str]] = []
        if needs_nodes(task):
            found = await self._api.list(builtins.resource("nodes"), type=Node)
            nodes = [node.metadata.labels for node in found.items]
        placement = place(task, nodes)
        claims = await volumes.resolve(self._api, self._user, set(task.volumes.values()))
        archive = await self._packed(task)
        now = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
        namespace = self._api.namespace
        return Submission(task, new_id(), self._user, namespace, placement, claims, archive, now)

    async def _packed(self, task: Task) -> Archive | None:
        if not task.uploads:
            return None
        if self._files is None:
            raise InputError(
                f"{task.uploads[0].where}: files cannot be uploaded through a server yet",
                hint="unset K8S_CLI_API_URL, or put the files on a volume",
            )
        return await asyncio.to_thread(pack, task.uploads, self._files)

    async def _create(self, submission: Submission) -> None:
        """The first job owns all else, so that what is stopped or fails half-way leaves nothing.

        It is suspended until all is there: nothing starts that could not be finished.
        """
        first, *others = compile_jobs(submission)
        companions = compile_companions(submission)
        first["spec"]["suspend"] = bool(companions)
        owner = await self._api.create(JOBS, first, type=PartialObject)
        reference = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
        }
        made = [owner.metadata.name]
        try:
            for companion in companions:
                companion["metadata"]["ownerReferences"] = [reference]
                await self._api.create(
                    _COMPANIONS[companion["kind"]], companion, type=PartialObject
                )
            for job in others:
                made.append(job["metadata"]["name"])
                await self._api.create(JOBS, job, type=PartialObject)
            if companions:
                resumed = {"spec": {"suspend": False}}
                await self._api.patch(JOBS, made[0], resumed, type=PartialObject)
        except BaseException:
            for name in made:
                await self._delete_job(name)
            raise

    async def _jobs(self, all_users: bool) -> list[TaskJob]:
        user = None if all_users else self._user
        return await self._select(labels.selecting(labels.TASK, user))

    async def _jobs_of(self, task_id: str) -> list[TaskJob]:
        found: list[TaskJob] = []
        if _ID.fullmatch(task_id):
            exact = {labels.TASK_ID: task_id}
            found = await self._select(labels.selecting(labels.TASK, self._user, **exact))
        if not found:
            raise NotFound(f"Task {task_id} not found", hint="`k8s-cli jobs list` shows yours")
        return found

    async def _select(self, selector: str) -> list[TaskJob]:
        selection = Selection(self._api.namespace, labels=selector)
        found = await self._api.list(JOBS, selection, type=TaskJob)
        return [job for job in found.items if job.metadata.deletion_timestamp is None]

    async def _delete(self, jobs: list[TaskJob]) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def delete(job: TaskJob) -> None:
            async with gate:
                await self._delete_job(job.metadata.name)

        try:
            async with asyncio.TaskGroup() as tasks:
                for job in jobs:
                    tasks.create_task(delete(job))
        except* KvestigateError as failed:
            raise failed.exceptions[0] from None

    async def _delete_job(self, name: str) -> None:
        try:
            await self._api.delete(JOBS, name, propagation=Propagation.BACKGROUND, type=bytes)
        except NotFound:
            pass
