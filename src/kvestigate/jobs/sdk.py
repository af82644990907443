"""The launcher for programs: a function for each command, of the same name.

from kvestigate import jobs

async with jobs.launcher("jane@example.com") as mine:
    task = await jobs.submit(mine, {"run": "echo hello", "num_nodes": 2})
    async for line in jobs.logs(mine, task.task_id):
        print(line.decode())
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from kvestigate.client.streams import Completed
from kvestigate.jobs import answers
from kvestigate.jobs.files.archive import packed
from kvestigate.jobs.files.uploading import Progress, put_pieces, send_parts
from kvestigate.jobs.interface import ExecRequest, Launcher, LogRequest
from kvestigate.jobs.launching import launcher as launcher
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.tasks.statuses import queued


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
        made = await mine.submit(task, archive.files.digest, archive.files.pieces)
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
create_volume = Launcher.create_volume
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
