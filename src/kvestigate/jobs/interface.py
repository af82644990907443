"""What a launcher can be asked for: each call is declared once, with its place in the REST API.

A `Call` in the class body of `Launcher` is a method of every launcher. `in_process` does the work
that a call means, `remote` sends it to a server, `server` has a route for each of `CALLS`, and
`operations` makes commands of them. Streams of lines, views and terminals are no calls: every
launcher implements them itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Generic, ParamSpec, TypeVar, overload

from kvestigate.jobs import answers
from kvestigate.operation import param

if TYPE_CHECKING:
    from kvestigate.client.streams import Session

P = ParamSpec("P")
A = TypeVar("A")

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")

TaskId = Annotated[str, param("The ID of the task.", argument=True)]
VolumeId = Annotated[str, param("The ID or the name of the volume.", argument=True)]


@dataclass(frozen=True, slots=True)
class Nothing:
    """The input of a call without parameters."""


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    task: Mapping[str, Any]
    """The fields of a SkyPilot task file."""
    files: str = ""
    """SHA-256 of the uploaded files; empty without any."""
    piece: Sequence[str] | None = None
    """SHA-256 of their pieces, which have been put before."""
    strict: bool = False
    """Fail if a field of the task would be ignored."""


@dataclass(frozen=True, slots=True)
class Digests:
    digests: Sequence[str]


@dataclass(frozen=True, slots=True)
class OneTask:
    task_id: TaskId


@dataclass(frozen=True, slots=True)
class ListRequest:
    all_users: Annotated[bool, param("Include the tasks or volumes of all users.")] = False


@dataclass(frozen=True, slots=True)
class OneVolume:
    volume_id: VolumeId


@dataclass(frozen=True, slots=True)
class ResizeRequest:
    volume_id: VolumeId
    size: Annotated[str, param("The new size: 20Gi.", argument=True)]


@dataclass(frozen=True, slots=True)
class PathRequest:
    volume_id: VolumeId
    path: Annotated[str, param("A directory on the volume.", argument=True)] = "/"


def _modes(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(mode.strip() for text in texts for mode in text.split(",") if mode.strip())


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    name: Annotated[str, param("What to call it.", argument=True)]
    size: Annotated[str, param("How large: 10Gi.", argument=True)]
    storage_class: Annotated[
        str | None, param("Class to use; the cluster's default if not given.", metavar="NAME")
    ] = None
    access_modes: Annotated[
        tuple[str, ...],
        param(
            "Separated by commas: ReadWriteOnce, ReadWriteMany, ReadOnlyMany.",
            metavar="MODES",
            parse=_modes,
            show=",".join,
        ),
    ] = ("ReadWriteOnce",)


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


WHOLE = "*"
"""The body of a request that is the whole input."""


@dataclass(frozen=True, eq=False)
class Call(Generic[P, A]):
    """A question with one answer; as an attribute of a class it is a method."""

    name: str
    """Of the operation in the OpenAPI description."""
    route: str
    """`POST /volumes/{volume_id}/resize`: the names are fields of the input."""
    input: Callable[P, Any]
    """The dataclass of the parameters. Those that are not in the path are in the query."""
    answer: type[A]
    description: str = ""
    body: str = ""
    """The field that is the body of the request, or WHOLE."""
    slow: bool = False
    """The answer waits until a pod runs."""

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]

    def __call__(self, launcher: Launcher, *args: P.args, **kwargs: P.kwargs) -> Awaitable[A]:
        return launcher.ask(self, self.input(*args, **kwargs))

    @overload
    def __get__(self, launcher: None, owner: type) -> Call[P, A]: ...
    @overload
    def __get__(self, launcher: Launcher, owner: type) -> Callable[P, Awaitable[A]]: ...
    def __get__(self, launcher: Launcher | None, owner: type) -> Any:
        return self if launcher is None else partial(self, launcher)


class Launcher(ABC):
    """Tasks and volumes of one user; `all_users` asks for everybody's, for administrators."""

    whoami = Call("whoami", "GET /whoami", Nothing, answers.WhoAmI)
    submit = Call(
        "submit_task",
        "POST /tasks/submit",
        SubmitRequest,
        answers.TaskSubmitResponse,
        "Start a task; the body has the fields of a SkyPilot task file.",
        body="task",
    )
    plan = Call(
        "plan_task",
        "POST /tasks/plan",
        SubmitRequest,
        answers.PlanResponse,
        "The objects that `submit` would create; nothing is created.",
        body="task",
    )
    stop_all = Call("stop_tasks", "POST /tasks/stop", ListRequest, answers.TaskStopAllResponse)
    list_tasks = Call("list_tasks", "GET /tasks", ListRequest, answers.TaskListResponse)
    history = Call(
        "task_history",
        "GET /history",
        ListRequest,
        answers.HistoryResponse,
        "The tasks that were submitted, also those that no longer exist.",
    )
    task = Call("task_status", "GET /tasks/{task_id}", OneTask, answers.TaskStatus)
    why = Call(
        "explain_task",
        "GET /tasks/{task_id}/why",
        OneTask,
        answers.Explanation,
        "Why the task waits or has failed, and what would make it run.",
    )
    endpoint = Call(
        "task_endpoint",
        "GET /tasks/{task_id}/endpoint",
        OneTask,
        answers.EndpointResponse,
        "The addresses of the task's ports.",
    )
    stop = Call("stop_task", "POST /tasks/{task_id}/stop", OneTask, answers.TaskStopResponse)
    missing_pieces = Call(
        "missing_pieces",
        "POST /files/missing",
        Digests,
        answers.MissingPieces,
        "The pieces of files that have yet to be sent.",
        body="digests",
    )
    create_volume = Call(
        "create_volume",
        "POST /volumes/create",
        VolumeRequest,
        answers.VolumeCreateResponse,
        body=WHOLE,
    )
    list_volumes = Call("list_volumes", "GET /volumes", ListRequest, answers.VolumeListResponse)
    volume = Call("volume_status", "GET /volumes/{volume_id}", OneVolume, answers.VolumeStatus)
    resize_volume = Call(
        "resize_volume",
        "POST /volumes/{volume_id}/resize",
        ResizeRequest,
        answers.VolumeResizeResponse,
    )
    volume_files = Call(
        "volume_files",
        "GET /volumes/{volume_id}/files",
        PathRequest,
        answers.VolumeFiles,
        "The files on the volume, listed by a pod that mounts it.",
        slow=True,
    )
    delete_volume = Call(
        "delete_volume", "DELETE /volumes/{volume_id}", OneVolume, answers.VolumeDeleteResponse
    )

    @abstractmethod
    async def ask(self, call: Call[..., A], input: Any) -> A:
        """The answer to a call."""

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


CALLS: tuple[Call[..., Any], ...] = tuple(
    call for call in vars(Launcher).values() if isinstance(call, Call)
)
