"""Tasks and volumes as operations, for those who call them by name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.jobs import answers
from kvestigate.jobs.answers import Explanation
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.interface import LogRequest, VolumeRequest
from kvestigate.jobs.tasks.statuses import queued
from kvestigate.jobs.users import User
from kvestigate.operation import Effect, Operation


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    user: str
    task: Mapping[str, Any]
    """The fields of a SkyPilot task file."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    user: str
    all_users: bool = False


@dataclass(frozen=True, slots=True)
class TaskOptions:
    user: str
    task_id: str


@dataclass(frozen=True, slots=True)
class LogOptions:
    user: str
    task_id: str
    tail: int | None = None
    node: int | None = None


@dataclass(frozen=True, slots=True)
class LogLines:
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VolumeCreateOptions:
    user: str
    name: str
    size: str
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)


@dataclass(frozen=True, slots=True)
class VolumeOptions:
    user: str
    volume_id: str


@dataclass(frozen=True, slots=True)
class VolumeResizeOptions:
    user: str
    volume_id: str
    size: str
    """`20Gi`"""


@dataclass(frozen=True, slots=True)
class VolumePathOptions:
    user: str
    volume_id: str
    path: str = "/"


@asynccontextmanager
async def _launcher(access: Access, user: str) -> AsyncIterator[InProcess]:
    async with connect(access) as api:
        yield InProcess(api, User(user))


async def submit(access: Access, options: SubmitOptions) -> answers.TaskSubmitResponse:
    async with _launcher(access, options.user) as launcher:
        return await launcher.submit(options.task)


async def list_tasks(access: Access, options: ListOptions) -> answers.TaskListResponse:
    async with _launcher(access, options.user) as launcher:
        return await launcher.list_tasks(all_users=options.all_users)


async def task(access: Access, options: TaskOptions) -> answers.TaskStatus:
    async with _launcher(access, options.user) as launcher:
        return await launcher.task(options.task_id)


async def queue(access: Access, options: ListOptions) -> answers.TaskListResponse:
    return queued(await list_tasks(access, options))


async def history(access: Access, options: ListOptions) -> answers.HistoryResponse:
    async with _launcher(access, options.user) as launcher:
        return await launcher.history(all_users=options.all_users)


async def endpoint(access: Access, options: TaskOptions) -> answers.EndpointResponse:
    async with _launcher(access, options.user) as launcher:
        return await launcher.endpoint(options.task_id)


async def why(access: Access, options: TaskOptions) -> Explanation:
    async with _launcher(access, options.user) as launcher:
        return await launcher.why(options.task_id)


async def stop(access: Access, options: TaskOptions) -> answers.TaskStopResponse:
    async with _launcher(access, options.user) as launcher:
        return await launcher.stop(options.task_id)


async def logs(access: Access, options: LogOptions) -> LogLines:
    request = LogRequest(follow=False, tail=options.tail, node=options.node)
    async with (
        _launcher(access, options.user) as launcher,
        aclosing(launcher.logs(options.task_id, request)) as lines,
    ):
        return LogLines(tuple([line.decode(errors="replace") async for line in lines]))


async def create_volume(
    access: Access, options: VolumeCreateOptions
) -> answers.VolumeCreateResponse:
    request = VolumeRequest(options.name, options.size, options.storage_class, options.access_modes)
    async with _launcher(access, options.user) as launcher:
        return await launcher.create_volume(request)


async def list_volumes(access: Access, options: ListOptions) -> answers.VolumeListResponse:
    async with _launcher(access, options.user) as launcher:
        return await launcher.list_volumes(all_users=options.all_users)


async def volume(access: Access, options: VolumeOptions) -> answers.VolumeStatus:
    async with _launcher(access, options.user) as launcher:
        return await launcher.volume(options.volume_id)


async def resize_volume(
    access: Access, options: VolumeResizeOptions
) -> answers.VolumeResizeResponse:
    async with _launcher(access, options.user) as launcher:
        return await launcher.resize_volume(options.volume_id, options.size)


async def volume_files(access: Access, options: VolumePathOptions) -> answers.VolumeFiles:
    async with _launcher(access, options.user) as launcher:
        return await launcher.volume_files(options.volume_id, options.path)


async def delete_volume(access: Access, options: VolumeOptions) -> answers.VolumeDeleteResponse:
    async with _launcher(access, options.user) as launcher:
        return await launcher.delete_volume(options.volume_id)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "jobs.submit",
        "Start a task.",
        SubmitOptions,
        answers.TaskSubmitResponse,
        Effect.WRITE,
        submit,
    ),
    Operation(
        "jobs.list",
        "List tasks, newest first.",
        ListOptions,
        answers.TaskListResponse,
        Effect.READ,
        list_tasks,
    ),
    Operation(
        "jobs.status",
        "Show one task and the state of its nodes.",
        TaskOptions,
        answers.TaskStatus,
        Effect.READ,
        task,
    ),
    Operation(
        "jobs.queue",
        "Show pending and running tasks, oldest first.",
        ListOptions,
        answers.TaskListResponse,
        Effect.READ,
        queue,
    ),
    Operation(
        "jobs.history",
        "List submitted tasks, also those that no longer exist.",
        ListOptions,
        answers.HistoryResponse,
        Effect.READ,
        history,
    ),
    Operation(
        "jobs.endpoint",
        "Show the addresses of a task's ports.",
        TaskOptions,
        answers.EndpointResponse,
        Effect.READ,
        endpoint,
    ),
    Operation(
        "jobs.why",
        "Explain why a task is pending or has failed.",
        TaskOptions,
        Explanation,
        Effect.READ,
        why,
    ),
    Operation(
        "jobs.stop",
        "Stop a task.",
        TaskOptions,
        answers.TaskStopResponse,
        Effect.DESTROY,
        stop,
    ),
    Operation(
        "jobs.logs",
        "Read the current log of a task.",
        LogOptions,
        LogLines,
        Effect.READ,
        logs,
    ),
    Operation(
        "volumes.create",
        "Create a volume.",
        VolumeCreateOptions,
        answers.VolumeCreateResponse,
        Effect.WRITE,
        create_volume,
    ),
    Operation(
        "volumes.list",
        "List volumes, newest first.",
        ListOptions,
        answers.VolumeListResponse,
        Effect.READ,
        list_volumes,
    ),
    Operation(
        "volumes.status",
        "Show one volume.",
        VolumeOptions,
        answers.VolumeStatus,
        Effect.READ,
        volume,
    ),
    Operation(
        "volumes.resize",
        "Make a volume larger.",
        VolumeResizeOptions,
        answers.VolumeResizeResponse,
        Effect.WRITE,
        resize_volume,
    ),
    Operation(
        "volumes.ls",
        "List the files on a volume.",
        VolumePathOptions,
        answers.VolumeFiles,
        Effect.READ,
        volume_files,
    ),
    Operation(
        "volumes.delete",
        "Delete a volume and all data on it.",
        VolumeOptions,
        answers.VolumeDeleteResponse,
        Effect.DESTROY,
        delete_volume,
    ),
)
