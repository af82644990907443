"""Sends a task's local files: only what is not there yet, so that it goes on where it broke off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kvestigate.jobs.archive import Archive
from kvestigate.jobs.interface import Launcher

Progress = Callable[[int, int], None]
"""Told how many pieces of how many are there."""

_AT_ONCE = 4


async def put_pieces(launcher: Launcher, archive: Archive, progress: Progress) -> None:
    """Put the pieces into the cluster, before the task is submitted."""
    pieces = archive.files.pieces
    if not pieces:
        return
    wanted = set((await launcher.missing_pieces(pieces)).missing)
    sent = sum(digest not in wanted for digest in pieces)
    progress(sent, len(pieces))
    for index, digest in enumerate(pieces):
        if digest in wanted:
            wanted.discard(digest)
            content = await asyncio.to_thread(archive.piece, index)
            await launcher.put_piece(digest, content)
            sent += 1
            progress(sent, len(pieces))


async def send_parts(
    launcher: Launcher, task_id: str, nodes: int, archive: Archive, progress: Progress
) -> None:
    """Send large files to the nodes of a submitted task, as soon as each of them runs."""
    if not archive.files.streamed:
        return
    total, sent = archive.count * nodes, 0
    reading = asyncio.Lock()  # the archive is one file with one position
    gate = asyncio.Semaphore(_AT_ONCE)

    async def piece(index: int) -> bytes:
        async with reading:
            return await asyncio.to_thread(archive.piece, index)

    async def send(node: int) -> None:
        nonlocal sent
        async with gate:
            there = set(await launcher.parts(task_id, node))
            sent += len(there)
            for index in range(archive.count):
                if index not in there:
                    await launcher.send_part(task_id, node, index, await piece(index))
                    sent += 1
                    progress(sent, total)
            await launcher.end_parts(task_id, node)

    async with asyncio.TaskGroup() as tasks:
        for node in range(nodes):
            tasks.create_task(send(node))
