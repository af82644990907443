"""Files that are sent straight to a node: a shell here, whose connection may break."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import cast

import pytest

from kvestigate.client.streams import Channel, Output, Session
from kvestigate.errors import Conflict, ConnectionFailed, KvestigateError
from kvestigate.jobs.answers import NodeView, State, TaskMetadata, TaskStatus, TaskView
from kvestigate.jobs.files.archive import Archive, packed
from kvestigate.jobs.files.uploading import send_parts
from kvestigate.jobs.interface import ExecRequest, Launcher
from kvestigate.jobs.tasks.model import Upload
from kvestigate.jobs.tasks.pieces import PIECE, Files
from kvestigate.jobs.tasks.script import DONE, FILES

TASK = "abc12345"
NEVER = 1 << 40


class Shell(Session):
    """A command in a node, whose connection breaks when it has carried so many bytes."""

    def __init__(self, command: tuple[str, ...], breaks_after: int) -> None:
        self._command = command
        self._left = breaks_after
        self.carried = 0

    async def __aenter__(self) -> Shell:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=pipe
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.communicate()

    async def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        carried = data[: self._left]
        self._left -= len(carried)
        self.carried += len(carried)
        self._process.stdin.write(carried)
        await self._process.stdin.drain()
        if len(carried) < len(data):
            self._process.stdin.close()

    async def __aiter__(self) -> AsyncIterator[Output]:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        while data := await self._process.stdout.read(1000):
            yield Output(Channel.STDOUT, data)
        if not self._left:
            raise ConnectionFailed("the connection broke")
        yield Output(Channel.STDERR, await self._process.stderr.read())
        self.exit_code = await self._process.wait()


class Nodes:
    """As much of a launcher as an upload needs."""

    def __init__(self, directory: Path, breaks_after: list[int], phase: str = "Running") -> None:
        self._directory = directory
        self._breaks_after = breaks_after
        self._phase = phase
        self.sessions: list[Shell] = []

    async def watch(self, task_id: str) -> AsyncGenerator[TaskView, None]:
        meta = TaskMetadata("job", "default", 1, ("job",), 0, 0, 1, 0)
        task = TaskStatus(task_id, "task", State.RUNNING, "", "", "jane", meta)
        yield TaskView(task, (NodeView(0, "Pending", "", 0, "", "", ""),))
        yield TaskView(task, (NodeView(0, self._phase, "machine", 0, "", "", ""),))

    async def session(self, task_id: str, request: ExecRequest) -> Session:
        command = tuple(each.replace(FILES, str(self._directory)) for each in request.command)
        self.sessions.append(Shell(command, self._breaks_after.pop(0)))
        return self.sessions[-1]


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Of six parts, as if it were too large for the cluster."""
    (tmp_path / "large").write_bytes(os.urandom(5 * PIECE))
    with packed([Upload("large", "/large", "file_mounts./large")], tmp_path) as made:
        yield replace(made, files=Files(made.files.digest))


@pytest.fixture
def node(tmp_path: Path) -> Path:
    (tmp_path / "node").mkdir()
    return tmp_path / "node"


async def upload(nodes: Nodes, archive: Archive) -> list[tuple[int, int]]:
    said: list[tuple[int, int]] = []
    launcher = cast("Launcher", nodes)
    await send_parts(launcher, TASK, 1, archive, lambda done, total: said.append((done, total)))
    return said


def received(node: Path) -> list[bytes]:
    return [part.read_bytes() for part in sorted(node.glob("part-*"))]


async def test_all_parts_come_over_one_connection(archive: Archive, node: Path) -> None:
    nodes = Nodes(node, [NEVER])
    assert await upload(nodes, archive) == [(done, 6) for done in range(1, 7)]
    assert (node / DONE).exists()
    assert received(node) == [archive.piece(index) for index in range(6)]


async def test_it_goes_on_where_it_broke_off(archive: Archive, node: Path) -> None:
    nodes = Nodes(node, [archive.starts[3] + 1000, 20, NEVER])
    await upload(nodes, archive)
    assert received(node) == [archive.piece(index) for index in range(6)]
    *_, last = nodes.sessions
    assert len(nodes.sessions) == 3
    assert last.carried < archive.starts[6] - archive.starts[3] + 1000
    # And once more: nothing is sent that is there.
    again = Nodes(node, [NEVER])
    await upload(again, archive)
    assert again.sessions[0].carried == len(DONE) + 1


async def test_a_node_that_cannot_take_files_says_why(archive: Archive, node: Path) -> None:
    missing = Nodes(node / "absent", [NEVER])
    with pytest.raises(KvestigateError, match=r"could not store the files: .*absent"):
        await upload(missing, archive)


async def test_a_task_that_ends_before_takes_no_files(archive: Archive, node: Path) -> None:
    with pytest.raises(Conflict, match="ended before node-0 had its files"):
        await upload(Nodes(node, [], phase="Failed"), archive)
