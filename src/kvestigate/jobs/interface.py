"""What a launcher can be asked for: each call is declared once, with its place in the REST API.

A `Launcher` turns its methods into calls. `in_process` does the work that a call means, `remote`
sends the call to a server, and `server` has a route for each of `CALLS`. Streams of lines, views
and terminals are no calls: every launcher implements them itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kvestigate.jobs import answers
from kvestigate.jobs.tasks.pieces import Files

if TYPE_CHECKING:
    from kvestigate.client.streams import Session

A = TypeVar("A")

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")
REQUIRED: Final = ...


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
    """Only the lines of this node."""
    timestamps: bool = False
    """Each line begins, after the node's name, with the time it was written."""
    after: Mapping[int, str] = field(default_factory=dict)
    """By node: the time up to which its log was read before, `2006-01-02T15:04:05Z`."""


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """A command beside a task's own, or with no command the task's own process."""

    command: tuple[str, ...] = ()
    node: int = 0
    stdin: bool = False
    tty: bool = False


@dataclass(frozen=True, eq=False)
class Call(Generic[A]):
    """A question with one answer."""

    name: str
    """Of the operation in the OpenAPI description."""
    method: str
    path: str
    """`/volumes/{volume_id}/resize`"""
    answer: type[A]
    description: str = ""
    query: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the query and their defaults; REQUIRED if there is none."""
    body: str = ""
    """The parameter that is the body of the request."""
    slow: bool = False
    """The answer waits until a pod runs."""


_OF_ALL = {"all_users": False}
_UPLOADED: Mapping[str, Any] = {"files": "", "piece": None}

WHOAMI = Call("whoami", "GET", "/whoami", answers.WhoAmI)
SUBMIT = Call(
    "submit_task",
    "POST",
    "/tasks/submit",
    answers.TaskSubmitResponse,
    "Start a task; the body has the fields of a SkyPilot task file.",
    query=_UPLOADED,
    body="task",
)
PLAN = Call(
    "plan_task",
    "POST",
    "/tasks/plan",
    answers.PlanResponse,
    "The objects that `submit` would create; nothing is created.",
    query=_UPLOADED,
    body="task",
)
STOP_ALL = Call("stop_tasks", "POST", "/tasks/stop", answers.TaskStopAllResponse, query=_OF_ALL)
LIST_TASKS = Call("list_tasks", "GET", "/tasks", answers.TaskListResponse, query=_OF_ALL)
HISTORY = Call(
    "task_history",
    "GET",
    "/history",
    answers.HistoryResponse,
    "The tasks that were submitted, also those that no longer exist.",
    query=_OF_ALL,
)
TASK = Call("task_status", "GET", "/tasks/{task_id}", answers.TaskStatus)
WHY = Call(
    "explain_task",
    "GET",
    "/tasks/{task_id}/why",
    answers.Explanation,
    "Why the task waits or has failed, and what would make it run.",
)
ENDPOINT = Call(
    "task_endpoint",
    "GET",
    "/tasks/{task_id}/endpoint",
    answers.EndpointResponse,
    "The addresses of the task's ports.",
)
STOP = Call("stop_task", "POST", "/tasks/{task_id}/stop", answers.TaskStopResponse)
MISSING_PIECES = Call(
    "missing_pieces",
    "POST",
    "/files/missing",
    answers.MissingPieces,
    "The pieces of files that have yet to be sent.",
    body="digests",
)
CREATE_VOLUME = Call(
    "create_volume", "POST", "/volumes/create", answers.VolumeCreateResponse, body="volume"
)
LIST_VOLUMES = Call("list_volumes", "GET", "/volumes", answers.VolumeListResponse, query=_OF_ALL)
VOLUME = Call("volume_status", "GET", "/volumes/{volume_id}", answers.VolumeStatus)
RESIZE_VOLUME = Call(
    "resize_volume",
    "POST",
    "/volumes/{volume_id}/resize",
    answers.VolumeResizeResponse,
    query={"size": REQUIRED},
)
VOLUME_FILES = Call(
    "volume_files",
    "GET",
    "/volumes/{volume_id}/files",
    answers.VolumeFiles,
    "The files on the volume, listed by a pod that mounts it.",
    query={"path": "/"},
    slow=True,
)
DELETE_VOLUME = Call(
    "delete_volume", "DELETE", "/volumes/{volume_id}", answers.VolumeDeleteResponse
)

CALLS: tuple[Call[Any], ...] = (
    WHOAMI,
    SUBMIT,
    PLAN,
    STOP_ALL,
    LIST_TASKS,
    HISTORY,
    TASK,
    WHY,
    ENDPOINT,
    STOP,
    MISSING_PIECES,
    CREATE_VOLUME,
    LIST_VOLUMES,
    VOLUME,
    RESIZE_VOLUME,
    VOLUME_FILES,
    DELETE_VOLUME,
)


class Launcher(ABC):
    """Tasks and volumes of one user; `all_users` asks for everybody's, for administrators."""

    @abstractmethod
    async def ask(self, call: Call[A], **given: Any) -> A:
        """The answer to a call; `given` has its parameters by name."""

    @abstractmethod
    def watch(self, task_id: str) -> AsyncGenerator[answers.TaskView, None]:
        """The task now and after each change, until it has ended."""

    @abstractmethod
    def logs(self, task_id: str, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """Lines without their newlines."""

    @abstractmethod
    async def session(self, task_id: str, request: ExecRequest) -> Session:
        """A process in a node of a task: `async with await launcher.session(...) as session`."""

    @abstractmethod
    async def put_piece(self, digest: str, content: bytes) -> None:
        """Send a piece of files that a task will need."""

    async def whoami(self) -> answers.WhoAmI:
        return await self.ask(WHOAMI)

    async def plan(
        self, document: Mapping[str, Any], files: Files | None = None
    ) -> answers.PlanResponse:
        """The objects that `submit` would create."""
        return await self.ask(PLAN, task=document, **_uploaded(files))

    async def submit(
        self, document: Mapping[str, Any], files: Files | None = None
    ) -> answers.TaskSubmitResponse:
        """Start a task; the pieces of its `files` have been put before."""
        return await self.ask(SUBMIT, task=document, **_uploaded(files))

    async def list_tasks(self, *, all_users: bool = False) -> answers.TaskListResponse:
        return await self.ask(LIST_TASKS, all_users=all_users)

    async def history(self, *, all_users: bool = False) -> answers.HistoryResponse:
        return await self.ask(HISTORY, all_users=all_users)

    async def task(self, task_id: str) -> answers.TaskStatus:
        return await self.ask(TASK, task_id=task_id)

    async def why(self, task_id: str) -> answers.Explanation:
        return await self.ask(WHY, task_id=task_id)

    async def endpoint(self, task_id: str) -> answers.EndpointResponse:
        return await self.ask(ENDPOINT, task_id=task_id)

    async def stop(self, task_id: str) -> answers.TaskStopResponse:
        return await self.ask(STOP, task_id=task_id)

    async def stop_all(self, *, all_users: bool = False) -> answers.TaskStopAllResponse:
        return await self.ask(STOP_ALL, all_users=all_users)

    async def missing_pieces(self, digests: Sequence[str]) -> answers.MissingPieces:
        return await self.ask(MISSING_PIECES, digests=list(digests))

    async def create_volume(self, request: VolumeRequest) -> answers.VolumeCreateResponse:
        return await self.ask(CREATE_VOLUME, volume=request)

    async def list_volumes(self, *, all_users: bool = False) -> answers.VolumeListResponse:
        return await self.ask(LIST_VOLUMES, all_users=all_users)

    async def volume(self, volume: str) -> answers.VolumeStatus:
        """The volume with this ID or name."""
        return await self.ask(VOLUME, volume_id=volume)

    async def resize_volume(self, volume: str, size: str) -> answers.VolumeResizeResponse:
        """Make a volume larger."""
        return await self.ask(RESIZE_VOLUME, volume_id=volume, size=size)

    async def volume_files(self, volume: str, path: str) -> answers.VolumeFiles:
        return await self.ask(VOLUME_FILES, volume_id=volume, path=path)

    async def delete_volume(self, volume: str) -> answers.VolumeDeleteResponse:
        return await self.ask(DELETE_VOLUME, volume_id=volume)


def _uploaded(files: Files | None) -> dict[str, Any]:
    return {} if files is None else {"files": files.digest, "piece": list(files.pieces)}
