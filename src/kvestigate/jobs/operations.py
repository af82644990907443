"""Tasks and volumes as operations: the calls of a launcher, with their commands."""

from __future__ import annotations

import os
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from kvestigate.client.connect import connect
from kvestigate.errors import UsageError
from kvestigate.jobs import answers, rendering
from kvestigate.jobs.interface import Call, Launcher, ListRequest, LogRequest
from kvestigate.jobs.launching import launcher_of
from kvestigate.jobs.remote.login import API_URL, owner
from kvestigate.jobs.tasks.statuses import queued
from kvestigate.jobs.volumes import contents
from kvestigate.operation import Context, Effect, Operation, Touched, param, touches_nothing
from kvestigate.render.blocks import text

A = TypeVar("A")


def _operation(
    name: str, call: Call[..., A], effect: Effect, summary: str, *examples: str, **more: Any
) -> Operation[Any, A]:
    """The operation that asks a launcher for `call`, with the call's input and output."""

    async def ask(context: Context, input: Any) -> A:
        async with launcher_of(context.resolve, context.owner) as launcher:
            return await launcher.ask(call, input)

    declared: dict[str, Any] = {
        "input": call.input,
        "output": call.answer,
        "touches": touches_nothing,
        "handler": ask,
        "examples": examples,
    }
    return Operation(name=name, effect=effect, summary=summary, **declared | more)


@dataclass(frozen=True, slots=True)
class TaskTable(ListRequest):
    details: Annotated[bool, param("Also show user, namespace and jobs.")] = False


@dataclass(frozen=True, slots=True)
class VolumeTable(ListRequest):
    details: Annotated[bool, param("Also show user, class, access modes and claim.")] = False


SUBMIT = _operation(
    "jobs.submit",
    Launcher.submit,
    Effect.WRITE,
    "Start a task from a SkyPilot YAML file (`-` for standard input) and follow its log.",
    render=rendering.message_blocks,
)
LIST = _operation(
    "jobs.list",
    Launcher.list_tasks,
    Effect.READ,
    "List tasks, newest first.",
    "kvestigate jobs list",
    "kvestigate jobs list --details --all-users",
    input=TaskTable,
    render_for=rendering.task_list_blocks,
)
STATUS = _operation(
    "jobs.status",
    Launcher.task,
    Effect.READ,
    "Show one task and the state of its nodes.",
    render=rendering.task_blocks,
)
HISTORY = _operation(
    "jobs.history",
    Launcher.history,
    Effect.READ,
    "List submitted tasks, also those that no longer exist.",
    "kvestigate jobs history",
    "kvestigate jobs history --all-users -o json",
    render_for=rendering.history_blocks,
)
ENDPOINT = _operation(
    "jobs.endpoint",
    Launcher.endpoint,
    Effect.READ,
    "Show the addresses of a task's ports.",
    "kvestigate jobs endpoint abc12345",
    render=rendering.endpoint_blocks,
)
WHY = _operation(
    "jobs.why",
    Launcher.why,
    Effect.READ,
    "Explain why a task waits or has failed, and what would make it run.",
    "kvestigate jobs why abc12345",
    render=rendering.explanation_blocks,
)
CREATE_VOLUME = _operation(
    "volumes.create",
    Launcher.create_volume,
    Effect.WRITE,
    "Create a volume NAME of SIZE (10Gi, 1Ti).",
    "kvestigate volumes create data-vol 10Gi",
    "kvestigate volumes create shared 1Ti --access-modes ReadWriteMany",
    render=rendering.message_blocks,
)
LIST_VOLUMES = _operation(
    "volumes.list",
    Launcher.list_volumes,
    Effect.READ,
    "List volumes, newest first.",
    "kvestigate volumes list",
    "kvestigate volumes list --details --all-users",
    input=VolumeTable,
    render_for=rendering.volume_list_blocks,
)
VOLUME_STATUS = _operation(
    "volumes.status",
    Launcher.volume,
    Effect.READ,
    "Show one volume.",
    "kvestigate volumes status vol12345",
    render=rendering.volume_blocks,
)
RESIZE_VOLUME = _operation(
    "volumes.resize",
    Launcher.resize_volume,
    Effect.WRITE,
    "Make a volume larger, if its storage class allows it.",
    "kvestigate volumes resize data-vol 20Gi",
    render=rendering.message_blocks,
)
VOLUME_FILES = _operation(
    "volumes.ls",
    Launcher.volume_files,
    Effect.READ,
    "List the files on a volume.",
    "kvestigate volumes ls data-vol",
    "kvestigate volumes ls data-vol /checkpoints",
    render=rendering.volume_files_blocks,
)
DELETE_VOLUME = _operation(
    "volumes.delete",
    Launcher.delete_volume,
    Effect.DESTROY,
    "Delete a volume and all data on it.",
    render=rendering.message_blocks,
)


async def queue(context: Context, request: ListRequest) -> answers.TaskListResponse:
    async with launcher_of(context.resolve, context.owner) as launcher:
        return queued(await launcher.ask(Launcher.list_tasks, request))


QUEUE = _operation(
    "jobs.queue",
    Launcher.list_tasks,
    Effect.READ,
    "Show pending and running tasks, oldest first.",
    "kvestigate jobs queue",
    "kvestigate jobs queue --all-users -o wide",
    handler=queue,
    render_for=lambda request, listed: rendering.queue_blocks(
        request, listed, datetime.now(UTC).replace(tzinfo=None)
    ),
)


@dataclass(frozen=True, slots=True)
class StopOptions:
    task_id: Annotated[str | None, param("The ID of the task.", argument=True)] = None
    all_tasks: Annotated[bool, param("All of your tasks that have not ended.", "--all")] = False
    all_users: Annotated[bool, param("Include the tasks or volumes of all users.")] = False


async def stop(context: Context, options: StopOptions) -> Any:
    task_id, all_tasks, all_users = options.task_id, options.all_tasks, options.all_users
    if (task_id is None) is not all_tasks or (all_users and not all_tasks):
        raise UsageError(
            "name a task or give --all, and --all-users only with --all",
            hint="`k8s-cli jobs list` shows the tasks",
        )
    async with launcher_of(context.resolve, context.owner) as launcher:
        if task_id is not None:
            return await launcher.stop(task_id)
        return await launcher.stop_all(all_users)


STOP = _operation(
    "jobs.stop",
    Launcher.stop,
    Effect.DESTROY,
    "Stop a task, or all of them; its jobs and pods are deleted.",
    "kvestigate jobs stop abc12345",
    "kvestigate jobs stop --all",
    input=StopOptions,
    handler=stop,
    render=rendering.message_blocks,
)
CANCEL = replace(
    STOP,
    name="jobs.cancel",
    summary="The same as `stop`.",
    examples=("kvestigate jobs cancel abc12345",),
)


@dataclass(frozen=True, slots=True)
class LogOptions:
    task_id: str
    tail: int | None = None
    node: int | None = None


@dataclass(frozen=True, slots=True)
class LogLines:
    lines: tuple[str, ...]


async def logs(context: Context, options: LogOptions) -> LogLines:
    request = LogRequest(follow=False, tail=options.tail, node=options.node)
    async with (
        launcher_of(context.resolve, context.owner) as launcher,
        aclosing(launcher.logs(options.task_id, request)) as lines,
    ):
        return LogLines(tuple([line.decode(errors="replace") async for line in lines]))


LOGS: Operation[LogOptions, LogLines] = Operation(
    name="jobs.logs",
    summary="Print the log of all nodes of a task.",
    input=LogOptions,
    output=LogLines,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=logs,
)


@dataclass(frozen=True, slots=True)
class CopyOptions:
    source: Annotated[str, param("What to copy.", argument=True)]
    target: Annotated[str, param("Where to.", argument=True)]


@dataclass(frozen=True, slots=True)
class Copied:
    source: str
    target: str
    skipped: tuple[str, ...] = ()
    """What was on the volume and is not made here: links to elsewhere, devices."""


async def copy(context: Context, options: CopyOptions) -> Copied:
    if os.environ.get(API_URL):
        raise UsageError(
            f"volumes cp works without a server, but {API_URL} is set", hint=f"unset {API_URL}"
        )
    there, here = _on_volume(options.target), _on_volume(options.source)
    if (there is None) is (here is None):
        raise UsageError(
            "one path must be on a volume and the other on this machine",
            hint="volumes cp ./data VOLUME:/ or volumes cp VOLUME:/data .",
        )
    user = owner(os.environ)
    skipped: tuple[str, ...] = ()
    async with connect(context.access) as api:
        if there is not None:
            await contents.copy_in(api, user, there, Path(options.source))
        elif here is not None:
            skipped = await contents.copy_out(api, user, here, Path(options.target))
    return Copied(options.source, options.target, skipped)


def _on_volume(text: str) -> tuple[str, str] | None:
    """`data-vol:/path` as volume and path; None for a local path, such as `./a:b`."""
    volume, colon, path = text.partition(":")
    return (volume, path or "/") if colon and volume and "/" not in volume else None


def _local(options: CopyOptions) -> Touched:
    paths = (options.source, options.target)
    return Touched(files=tuple(path for path in paths if _on_volume(path) is None))


COPY: Operation[CopyOptions, Copied] = Operation(
    name="volumes.cp",
    summary="Copy files to or from a volume, which is written VOLUME:PATH.",
    examples=(
        "kvestigate volumes cp ./dataset data-vol:/",
        "kvestigate volumes cp data-vol:/checkpoints/last.pt .",
    ),
    input=CopyOptions,
    output=Copied,
    effect=Effect.WRITE,
    touches=_local,
    handler=copy,
    render=lambda done: [
        text(f"skipped {name}: a link to elsewhere, or not a file") for name in done.skipped
    ],
)
