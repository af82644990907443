"""Sends a task's local files: only the missing parts, so that a broken upload can continue."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from kvestigate.aio.backoff import Backoff
from kvestigate.aio.groups import one_failure
from kvestigate.client.streams import Channel, Session
from kvestigate.errors import (
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    KvestigateError,
    ServiceUnavailable,
)
from kvestigate.jobs.files.archive import Archive
from kvestigate.jobs.interface import ExecRequest, Launcher
from kvestigate.jobs.tasks.script import DONE, READY, RECEIVE

Progress = Callable[[int, int], None]
"""Called with the number of pieces that arrived, and of all pieces."""

START_SECONDS = 300.0
"""How long a node may take to run."""
_ANSWER_SECONDS = 120.0
"""How long a node may take for one part."""
_AT_ONCE = 4
_ATTEMPTS = 10
"""Consecutive connections without progress before giving up."""


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
    received = [0] * nodes
    reading = asyncio.Lock()  # the archive is one file with one position
    gate = asyncio.Semaphore(_AT_ONCE)

    def report(node: int, count: int) -> None:
        received[node] = count
        progress(sum(received), archive.count * nodes)

    async def send(node: int) -> None:
        async with gate:
            await _Sending(launcher, task_id, node, archive, reading, report).run()

    with one_failure():
        async with asyncio.TaskGroup() as tasks:
            for node in range(nodes):
                tasks.create_task(send(node))


class _Sending:
    """The parts of an archive on their way to one node."""

    def __init__(
        self,
        launcher: Launcher,
        task_id: str,
        node: int,
        archive: Archive,
        reading: asyncio.Lock,
        report: Callable[[int, int], None],
    ) -> None:
        self._launcher = launcher
        self._task_id = task_id
        self._node = node
        self._archive = archive
        self._reading = reading
        self._report = report
        self._there: set[str] = set()
        """The names of the parts that the node has."""

    async def run(self) -> None:
        backoff = Backoff(initial=0.2, cap=5.0)
        attempts = 0
        while True:
            before = len(self._there)
            try:
                await self._running()
                request = ExecRequest(("/bin/sh", "-c", RECEIVE), self._node, stdin=True)
                async with await self._launcher.session(self._task_id, request) as session:
                    await self._send(session)
                return
            except (ConnectionFailed, ServiceUnavailable):
                attempts += 1
                if len(self._there) > before:
                    attempts = 0
                    backoff.reset()
                if attempts > _ATTEMPTS:
                    raise
            await asyncio.sleep(backoff.next())

    async def _running(self) -> None:
        try:
            async with (
                asyncio.timeout(START_SECONDS),
                aclosing(self._launcher.watch(self._task_id)) as views,
            ):
                async for view in views:
                    phases = {node.index: node.phase for node in view.nodes}
                    if phases.get(self._node) == "Running":
                        return
        except TimeoutError:
            raise DeadlineExceeded(
                f"node-{self._node} did not start within {START_SECONDS:g} s", hint=self._why()
            ) from None
        raise Conflict(
            f"task {self._task_id} ended before node-{self._node} had its files", hint=self._why()
        )

    async def _send(self, session: Session) -> None:
        """Over one connection: the node names what it has, and each part that it has got."""
        feeding: asyncio.Task[None] | None = None
        complaint = bytearray()
        try:
            async with aclosing(_lines(session, complaint)) as lines:
                async for line in lines:
                    if line == DONE:
                        return
                    if line == READY:
                        feeding = asyncio.create_task(self._feed(session, set(self._there)))
                    else:
                        self._there.add(line)
                        self._report(self._node, len(self._there))
        except TimeoutError:
            raise DeadlineExceeded(
                f"node-{self._node} did not answer within {_ANSWER_SECONDS:g} s", hint=self._why()
            ) from None
        finally:
            if feeding is not None:
                feeding.cancel()
                await asyncio.wait({feeding})
        reason = complaint.decode(errors="replace").strip() or f"exit code {session.exit_code}"
        raise KvestigateError(f"node-{self._node} could not store the files: {reason}")

    async def _feed(self, session: Session, there: set[str]) -> None:
        for index in range(self._archive.count):
            name = f"part-{index:06}"  # zeros, so that the shell's order is ours
            if name not in there:
                async with self._reading:
                    content = await asyncio.to_thread(self._archive.piece, index)
                digest = hashlib.sha256(content).hexdigest()
                await session.write(f"{name} {len(content)} {digest}\n".encode() + content)
        await session.write(f"{DONE}\n".encode())

    def _why(self) -> str:
        return f"`k8s-cli jobs why {self._task_id}` shows the reason"


async def _lines(session: Session, complaint: bytearray) -> AsyncGenerator[str, None]:
    """What the process writes, line by line; TimeoutError if nothing comes for too long."""
    now = asyncio.get_running_loop().time
    rest = b""
    async with asyncio.timeout(_ANSWER_SECONDS) as limit:
        async for piece in session:
            limit.reschedule(now() + _ANSWER_SECONDS)
            if piece.channel is Channel.STDERR:
                complaint += piece.data
                continue
            *whole, rest = (rest + piece.data).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")
