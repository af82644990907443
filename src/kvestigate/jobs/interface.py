"""What can be asked for, whether it is done in this process or by a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kvestigate.jobs import answers
from kvestigate.jobs.answers import Explanation
from kvestigate.jobs.tasks.pieces import Files

if TYPE_CHECKING:
    from kvestigate.client.streams import Session

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    name: str
    size: str
    """`10Gi`"""
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which lines of a task."""

    follow: bool = True
    tail: int | None = None
    since_seconds: int | None = None
    node: int | None = None
    """One node alone."""
    timestamps: bool = False
    """Each line begins, after the node's name, with the time it was written."""
    after: Mapping[int, str] = field(default_factory=dict)
    """From when on, `2006-01-02T15:04:05Z`, for nodes whose log was read so far before."""


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """A command beside a task's own, or with no command the task's own process."""

    command: tuple[str, ...] = ()
    node: int = 0
    stdin: bool = False
    tty: bool = False


class Launcher(Protocol):
    """Tasks and volumes of one user; `all_users` looks at everybody's, for administrators."""

    async def whoami(self) -> answers.WhoAmI: ...

    async def plan(
        self, document: Mapping[str, Any], files: Files | None = None
    ) -> answers.PlanResponse: ...

    async def submit(
        self, document: Mapping[str, Any], files: Files | None = None
    ) -> answers.TaskSubmitResponse:
        """Start a task; the pieces of its `files` have been put before."""

    async def list_tasks(self, *, all_users: bool) -> answers.TaskListResponse: ...

    async def history(self, *, all_users: bool) -> answers.HistoryResponse: ...

    async def task(self, task_id: str) -> answers.TaskStatus: ...

    def watch(self, task_id: str) -> AsyncGenerator[answers.TaskView, None]:
        """The task now and after each change, until it has ended."""

    async def why(self, task_id: str) -> Explanation: ...

    async def endpoint(self, task_id: str) -> answers.EndpointResponse: ...

    async def stop(self, task_id: str) -> answers.TaskStopResponse: ...

    async def stop_all(self, *, all_users: bool) -> answers.TaskStopAllResponse: ...

    def logs(self, task_id: str, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """Lines without their newlines."""

    async def session(self, task_id: str, request: ExecRequest) -> Session:
        """A process in a node of a task: `async with await launcher.session(...) as session`."""

    async def missing_pieces(self, digests: Sequence[str]) -> answers.MissingPieces: ...

    async def put_piece(self, digest: str, content: bytes) -> None: ...

    async def create_volume(self, request: VolumeRequest) -> answers.VolumeCreateResponse: ...

    async def list_volumes(self, *, all_users: bool) -> answers.VolumeListResponse: ...

    async def volume(self, volume_id: str) -> answers.VolumeStatus: ...

    async def resize_volume(self, volume_id: str, size: str) -> answers.VolumeResizeResponse: ...

    async def volume_files(self, volume_id: str, path: str) -> answers.VolumeFiles: ...

    async def delete_volume(self, volume_id: str) -> answers.VolumeDeleteResponse: ...
