"""Operations: everything that people and agents can ask for, declared once.

An `Operation` says what it takes and gives, what it can do to the world, which confirmation that
needs, and what of the world one input touches. The command line, the HTTP gateway and MCP run the
same object by the same call, `Operation.run`, and derive the rest from the declaration: flags and
help, JSON schemas, the policy for agents, the audit record.

A policy never looks at the fields of an input. It judges what `touches` returns, so a node is
fenced whatever the field is called that names it. What an agent may neither see nor set is marked
where the field is declared (`param(..., operator_only=True)`).
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from kvestigate.client.access import Access, AccessOptions
from kvestigate.errors import EXIT_OK, InputError
from kvestigate.kube import durations
from kvestigate.node_access.model import NodeAccess
from kvestigate.render.blocks import Block

Input = TypeVar("Input")
Output = TypeVar("Output")

_PARAM = "param"


class Param(Struct, frozen=True):
    """How a field of an input is given, where its name and type do not say it."""

    flags: tuple[str, ...] = ()
    """`-l`, `--selector`; none: the name of the field."""
    argument: bool = False
    """On the command line it stands alone, without a flag."""
    metavar: str = ""
    parse: Callable[[Any], Any] | None = None
    """From a text to the value, or from all texts to a list or mapping. Raises ValueError."""
    show: Callable[[Any], str] = str
    """How a default is written in the help."""
    is_namespace: bool = False
    """It is the namespace of `-n`, which every command has."""
    operator_only: bool = False
    """Agents have the default, and neither see nor set it."""
    is_group: bool = False
    """On the command line it is no parameter, but each of its own fields is."""


def param(
    help: str,
    *flags: str,
    argument: bool = False,
    metavar: str = "",
    parse: Callable[[Any], Any] | None = None,
    show: Callable[[Any], str] = str,
    lowest: int | None = None,
    highest: int | None = None,
    operator_only: bool = False,
) -> msgspec.Meta:
    """The annotation of a field: `selector: Annotated[str, param("Only pods with ...", "-l")]`.

    The text is the help of the flag and the description in the JSON schema.
    """
    declared = Param(flags, argument, metavar, parse, show, operator_only=operator_only)
    return msgspec.Meta(description=help, ge=lowest, le=highest, extra={_PARAM: declared})


def duration(help: str, *flags: str) -> msgspec.Meta:
    """The annotation of a number of seconds, which people write as `30s` or `1m30s`."""
    declared = Param(flags, metavar="DURATION", parse=durations.parse, show=durations.text)
    return msgspec.Meta(description=help, extra={_PARAM: declared})


NAMESPACE = msgspec.Meta(
    description="The namespace to work in.", extra={_PARAM: Param(is_namespace=True)}
)
"""The annotation of a field that is the namespace of `-n`."""

GROUP = msgspec.Meta(extra={_PARAM: Param(is_group=True)})
"""The annotation of a field whose own fields are flags: `targets: Annotated[Targets, GROUP]`."""


def check_namespace(name: str) -> None:
    """InputError unless it is empty or can be the name of a namespace: it is part of a path."""
    if not name:
        return
    from kvestigate.kube.names import label_problems

    if problems := label_problems(name):
        raise InputError(f"{name[:80]!r}: {problems[0]}", where="namespace")


def declared(info: msgspec.inspect.Type) -> tuple[Param, str]:
    """What the annotation of a field says, and its description; empty ones if there is none."""
    found, described = Param(), ""
    while True:
        if isinstance(info, msgspec.inspect.Metadata):
            found = (info.extra or {}).get(_PARAM, found)
            described = (info.extra_json_schema or {}).get("description", "") or described
            info = info.type
        elif (inner := without_none(info)) is not None:
            info = inner
        else:
            return found, described


def without_none(info: msgspec.inspect.Type) -> msgspec.inspect.Type | None:
    """The type of which `info` is the optional form; None if it is no such form."""
    if not isinstance(info, msgspec.inspect.UnionType):
        return None
    some = [each for each in info.types if not isinstance(each, msgspec.inspect.NoneType)]
    return some[0] if len(some) == 1 else None


class Reach(enum.Enum):
    """What an operation talks to, and so how its command lets people name it."""

    CLUSTER = "cluster"
    HOSTS = "hosts"
    """The hosts of a cluster's nodes, through the DaemonSet for node access."""
    PLANES = "planes"
    """A server of planes."""


class Effect(enum.Enum):
    """What running an operation can do to the world."""

    READ = "read"
    WRITE = "write"
    DESTROY = "destroy"


class Consequence(enum.Enum):
    """What a person has to say that they understand before an operation acts."""

    MODIFIES_CLUSTER = "modifies-cluster"
    """API objects change."""
    MODIFIES_HOSTS = "modifies-hosts"
    """Workspaces on the nodes' own file systems change."""
    WRITES_TO_HOSTS = "writes-to-hosts"
    """Files are copied to nodes or pods."""
    DISRUPTS_WORKLOADS = "disrupts-workloads"
    """Running pods are evicted."""

    @property
    def flag(self) -> str:
        return f"--i-understand-this-{self.value}"

    @property
    def words(self) -> str:
        """`modifies the cluster`, `writes to hosts`"""
        return self.value.replace("-", " ").replace("cluster", "the cluster")


class Use(enum.Enum):
    """What an operation does with a workspace that its input names."""

    CREATE = "create"
    """The workspace may exist already; then the operation repairs it."""
    COMPARE = "compare"
    """The workspace is only looked at and may be missing."""
    INSIDE = "inside"
    """Files or processes of an existing workspace are read or changed."""
    REMOVE = "remove"


class WorkspaceUse(Struct, frozen=True):
    """One workspace that an input names, with everything that a policy or a quota asks of it."""

    node: str
    name: str
    use: Use
    storage_mode: str
    tmpfs_bytes: int
    """Host memory that its tmpfs may take."""
    gpus: int
    """GPUs that it reserves."""
    cordons: bool
    """Whether it keeps pods off its node."""
    root: str
    """The directory of the host that it is in."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What of the world one input names."""

    nodes: tuple[str, ...] = ()
    """Nodes whose host is reached."""
    every_node: bool = False
    """The input names no node and so means all of them; `Operation.confined` narrows it."""
    namespaces: tuple[str, ...] = ()
    """Namespaces whose objects are read or changed; none named means all."""
    workspaces: tuple[WorkspaceUse, ...] = ()
    gpus: tuple[int, ...] = ()
    """GPUs of the host, by index, that a process is bound to."""
    files: tuple[str, ...] = ()
    """Paths on the machine that runs the operation, which it reads or writes."""


NOTHING = Touched()


class Isolation(enum.StrEnum):
    """How much of a fence the runs of agents need before anything of them is done."""

    REQUIRED = "required"
    """A host that cannot build all of it gets no workspace."""
    BEST_EFFORT = "best-effort"
    """As much as the host can build."""
    NONE = "none"
    """Agents are as trusted as the operator: what they run is root."""


class RunRules(Struct, frozen=True):
    """What holds for everything that an agent does on a host."""

    isolation: Isolation = Isolation.REQUIRED
    cpu: str = ""
    """CPUs that a run may take, as Kubernetes writes amounts; empty: as many as there are."""
    memory: str = ""
    """Memory that a run may take; empty: as much as there is."""
    processes: int = 4096
    """Processes and threads that a workspace may have."""
    infiniband: bool = False
    """Whether runs may use the host's InfiniBand devices."""


def touches_nothing(_: object) -> Touched:
    """For operations that only read the API, or nothing at all."""
    return NOTHING


@dataclass(frozen=True)
class Context:
    """In what circumstances an operation runs: where, for whom, and whether it may act."""

    resolve: Callable[[], Access]
    """The cluster. Asked only when an operation needs one: some work without."""
    apply: bool = False
    """False: nothing is changed, and the result says what would be done."""
    owner: str = ""
    """The agent in whose name it is done; empty for the operator."""
    rules: RunRules | None = None
    """What holds for that agent on hosts; None for the operator, who may do anything there."""
    via: NodeAccess = field(default_factory=NodeAccess)
    """The DaemonSet through which hosts are reached."""
    wanted: AccessOptions = field(default_factory=AccessOptions)
    """What was said about the cluster, for operations on the kubeconfig itself."""
    progress: Any = None
    """Told how far the operation is while somebody waits: a function of a name, a count and the
    total where it is known, unless the operation says otherwise. None: nobody waits."""
    redact: Callable[[str], str] = str
    """What of a text of the cluster may be known to whoever asks: to the operator, all of it.

    For operations that choose by such texts: the answer is redacted anyway, but what is chosen by
    a secret gives it away.
    """

    @cached_property
    def access(self) -> Access:
        return self.resolve()


def with_access(
    handler: Callable[[Access, Input], Awaitable[Output]],
) -> Callable[[Context, Input], Awaitable[Output]]:
    """For handlers that need nothing but the cluster."""

    async def call(context: Context, input: Input) -> Output:
        return await handler(context.access, input)

    return call


def with_progress(
    handler: Callable[[Access, Input, Any], Awaitable[Output]],
) -> Callable[[Context, Input], Awaitable[Output]]:
    """For handlers that need the cluster, and tell how far they are."""

    async def call(context: Context, input: Input) -> Output:
        return await handler(context.access, input, context.progress)

    return call


def _plain(output: Any) -> Sequence[Block]:
    """Any result, as YAML."""
    from kvestigate.render.blocks import text
    from kvestigate.render.encode import to_yaml

    return [text(to_yaml(output).rstrip("\n"))]


def _whole(output: Any, owner: str) -> Any:
    return output


def _always(output: Any) -> bool:
    return True


def _done(output: Any) -> int:
    return EXIT_OK


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation(Generic[Input, Output]):
    """One thing that people or agents can ask for."""

    name: str
    """`report.run`, `workspace.create`; the command line has the same words."""
    summary: str
    """One sentence: the help of the command and the description of the MCP tool."""
    description: str = ""
    """What else one should know, a paragraph or more."""
    examples: tuple[str, ...] = ()
    """Command lines."""
    input: type[Input]
    """A frozen dataclass or Struct whose fields are the parameters."""
    output: type[Output]
    """A dataclass or Struct, of which agents get the JSON schema."""
    effect: Effect
    touches: Callable[[Input], Touched]
    handler: Callable[[Context, Input], Awaitable[Output]]
    consequence: Consequence | None = None
    """Which confirmation it needs. None: it reads, or acts as soon as it is asked."""
    needs_apply: bool = True
    """False: the flag of the consequence is enough, and `--apply` may be left out."""
    for_agents: bool = False
    """A cyberspace may offer it. Everything else is the operator's alone."""
    idempotent: bool = False
    """Doing it a second time with the same input changes nothing more. What reads always is."""
    render: Callable[[Output], Sequence[Block]] = _plain
    render_for: Callable[[Input, Output], Sequence[Block]] | None = None
    """Instead of `render`, where the input says what is shown: `--details`."""
    pending: Callable[[Output], bool] = _always
    """Whether a plan that was only shown has anything left to do, and so to confirm."""
    exit_code: Callable[[Output], int] = _done
    """What the shell is told of a result."""
    exit_code_for: Callable[[Input, Output], int] | None = None
    """Instead of `exit_code`, where the input says what is a failure: `--fail-on`."""
    doing: Callable[[Input], str] | None = None
    """Shown to people who wait: `creating workspace finetune`."""
    counts: bool = False
    """It tells `context.progress` how far it is."""
    follows: bool = False
    """It tells `context.progress` which of its targets begins and ends, as `fanout` does."""
    json_file: bool = False
    """The command can also write the result to a file, with `--json PATH`."""
    reaches: Reach = Reach.CLUSTER
    announce: Callable[[Context, Input], str] | None = None
    """What would be done, in a line, of an operation that cannot look ahead: its handler is never
    called without `context.apply`."""
    confined: Callable[[Input, tuple[str, ...]], Input] | None = None
    """An input that means every node, narrowed to these."""
    shown: Callable[[Output, str], Output] = _whole
    """What of a result an agent, the owner, gets to see."""

    def __post_init__(self) -> None:
        if self.effect is Effect.READ and self.consequence is not None:
            raise ValueError(f"{self.name} only reads, and so has nothing to confirm")

    def blocks(self, input: Input, output: Output) -> Sequence[Block]:
        """What people are shown."""
        return self.render_for(input, output) if self.render_for else self.render(output)

    def code(self, input: Input, output: Output) -> int:
        """The exit code of the command."""
        return self.exit_code_for(input, output) if self.exit_code_for else self.exit_code(output)

    async def run(self, context: Context, input: Input) -> Output:
        """Carry it out, or plan it: the one call of all faces."""
        if not isinstance(input, self.input):
            raise TypeError(f"{self.name} takes {self.input.__name__}, not {type(input).__name__}")
        if self.effect is Effect.READ:
            context = replace(context, apply=False)
        elif self.consequence is None:
            context = replace(context, apply=True)
        elif self.announce is not None and not context.apply:
            raise RuntimeError(f"{self.name} has no plan but its announcement")
        return await self.handler(context, input)
