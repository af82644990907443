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
from kvestigate.operation import Effect, Operation, touches_nothing, with_access


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


SUBMIT: Operation[SubmitOptions, answers.TaskSubmitResponse] = Operation(
    name="jobs.submit",
    summary="Start a task.",
    input=SubmitOptions,
    output=answers.TaskSubmitResponse,
    effect=Effect.WRITE,
    touches=touches_nothing,
    handler=with_access(submit),
)
LIST: Operation[ListOptions, answers.TaskListResponse] = Operation(
    name="jobs.list",
    summary="List tasks, newest first.",
    input=ListOptions,
    output=answers.TaskListResponse,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(list_tasks),
)
STATUS: Operation[TaskOptions, answers.TaskStatus] = Operation(
    name="jobs.status",
    summary="Show one task and the state of its nodes.",
    input=TaskOptions,
    output=answers.TaskStatus,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(task),
)
QUEUE: Operation[ListOptions, answers.TaskListResponse] = Operation(
    name="jobs.queue",
    summary="Show pending and running tasks, oldest first.",
    input=ListOptions,
    output=answers.TaskListResponse,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(queue),
)
HISTORY: Operation[ListOptions, answers.HistoryResponse] = Operation(
    name="jobs.history",
    summary="List submitted tasks, also those that no longer exist.",
    input=ListOptions,
    output=answers.HistoryResponse,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(history),
)
ENDPOINT: Operation[TaskOptions, answers.EndpointResponse] = Operation(
    name="jobs.endpoint",
    summary="Show the addresses of a task's ports.",
    input=TaskOptions,
    output=answers.EndpointResponse,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(endpoint),
)
WHY: Operation[TaskOptions, Explanation] = Operation(
    name="jobs.why",
    summary="Explain why a task is pending or has failed.",
    input=TaskOptions,
    output=Explanation,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(why),
)
STOP: Operation[TaskOptions, answers.TaskStopResponse] = Operation(
    name="jobs.stop",
    summary="Stop a task.",
    input=TaskOptions,
    output=answers.TaskStopResponse,
    effect=Effect.DESTROY,
    touches=touches_nothing,
    handler=with_access(stop),
)
LOGS: Operation[LogOptions, LogLines] = Operation(
    name="jobs.logs",
    summary="Read the current log of a task.",
    input=LogOptions,
    output=LogLines,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(logs),
)
CREATE_VOLUME: Operation[VolumeCreateOptions, answers.VolumeCreateResponse] = Operation(
    name="volumes.create",
    summary="Create a volume.",
    input=VolumeCreateOptions,
    output=answers.VolumeCreateResponse,
    effect=Effect.WRITE,
    touches=touches_nothing,
    handler=with_access(create_volume),
)
LIST_VOLUMES: Operation[ListOptions, answers.VolumeListResponse] = Operation(
    name="volumes.list",
    summary="List volumes, newest first.",
    input=ListOptions,
    output=answers.VolumeListResponse,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(list_volumes),
)
VOLUME_STATUS: Operation[VolumeOptions, answers.VolumeStatus] = Operation(
    name="volumes.status",
    summary="Show one volume.",
    input=VolumeOptions,
    output=answers.VolumeStatus,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(volume),
)
RESIZE_VOLUME: Operation[VolumeResizeOptions, answers.VolumeResizeResponse] = Operation(
    name="volumes.resize",
    summary="Make a volume larger.",
    input=VolumeResizeOptions,
    output=answers.VolumeResizeResponse,
    effect=Effect.WRITE,
    touches=touches_nothing,
    handler=with_access(resize_volume),
)
VOLUME_FILES: Operation[VolumePathOptions, answers.VolumeFiles] = Operation(
    name="volumes.ls",
    summary="List the files on a volume.",
    input=VolumePathOptions,
    output=answers.VolumeFiles,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=with_access(volume_files),
)
DELETE_VOLUME: Operation[VolumeOptions, answers.VolumeDeleteResponse] = Operation(
    name="volumes.delete",
    summary="Delete a volume and all data on it.",
    input=VolumeOptions,
    output=answers.VolumeDeleteResponse,
    effect=Effect.DESTROY,
    touches=touches_nothing,
    handler=with_access(delete_volume),
)
