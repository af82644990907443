"""The launcher for programs: a function for each command, of the same name.

from kvestigate import jobs

async with jobs.launcher("jane@example.com") as mine:
    task = await jobs.submit(mine, {"run": "echo hello", "num_nodes": 2})
    async for line in jobs.logs(mine, task.task_id):
        print(line.decode())
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.client.streams import Completed
from kvestigate.errors import UsageError
from kvestigate.jobs import answers
from kvestigate.jobs.files.archive import packed
from kvestigate.jobs.files.uploading import Progress, put_pieces, send_parts
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.interface import ExecRequest, Launcher, LogRequest, VolumeRequest
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.tasks.statuses import queued
from kvestigate.jobs.users import User


@asynccontextmanager
async def launcher(
    user: str = "", *, url: str = "", token: str = "", access: Access | None = None
) -> AsyncIterator[Launcher]:
    """Tasks and volumes of `user`: of the server at `url`, else of the cluster of `access`."""
    async with AsyncExitStack() as stack:
        if url:
            named = User(user) if user else None
            yield await stack.enter_async_context(Remote(url, named, token))
        elif access is not None:
            yield InProcess(await stack.enter_async_context(connect(access)), User(user))
        else:
            raise UsageError("neither a server nor a cluster", hint="give `url` or `access`")


async def submit(
    mine: Launcher,
    task: Mapping[str, Any],
    *,
    files: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> answers.TaskSubmitResponse:
    """Start a task; relative paths of `workdir` and `file_mounts` are below `files`."""
    parsed = parse_task(dict(task))
    if not parsed.uploads:
        return await mine.submit(task)
    with packed(parsed.uploads, files or Path()) as archive:
        await put_pieces(mine, archive, progress)
        made = await mine.submit(task, archive.files)
        await send_parts(mine, made.task_id, parsed.num_nodes, archive, progress)
        return made


list = Launcher.list_tasks  # noqa: A001 - the command's name
history = Launcher.history
status = Launcher.task
why = Launcher.why
endpoint = Launcher.endpoint
stop = Launcher.stop
cancel = Launcher.stop
stop_all = Launcher.stop_all
list_volumes = Launcher.list_volumes
volume_status = Launcher.volume
resize_volume = Launcher.resize_volume
delete_volume = Launcher.delete_volume


async def queue(mine: Launcher, *, all_users: bool = False) -> answers.TaskListResponse:
    """Pending and running tasks, oldest first."""
    return queued(await mine.list_tasks(all_users=all_users))


def logs(
    mine: Launcher,
    task_id: str,
    *,
    follow: bool = True,
    tail: int | None = None,
    since_seconds: int | None = None,
    node: int | None = None,
) -> AsyncGenerator[bytes, None]:
    """Lines without their newlines."""
    return mine.logs(task_id, LogRequest(follow, tail, since_seconds, node))


async def exec(  # noqa: A001 - the command's name
    mine: Launcher,
    task_id: str,
    *command: str,
    node: int = 0,
    input: bytes | None = None,
    timeout: float = 600.0,
) -> Completed:
    """Run a command in a node; its exit code and output."""
    request = ExecRequest(command, node, input is not None)
    async with asyncio.timeout(timeout), await mine.session(task_id, request) as running:
        return await running.communicate(input)


async def create_volume(
    mine: Launcher,
    name: str,
    size: str,
    *,
    storage_class: str | None = None,
    access_modes: tuple[str, ...] = ("ReadWriteOnce",),
) -> answers.VolumeCreateResponse:
    return await mine.create_volume(VolumeRequest(name, size, storage_class, access_modes))
