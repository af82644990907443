"""The inputs of the operations on workspaces. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from kvestigate.errors import InputError
from kvestigate.kube.patterns import check_pattern
from kvestigate.operation import param
from kvestigate.workspace import names
from kvestigate.workspace.limits import Limits
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.spec import WorkspaceSpec, load_workspace
from kvestigate.workspace.trees import check_excludes
from kvestigate.workspace.uploads import Upload

LARGEST_PART = 64 << 20
"""Bytes of a file that are fetched at once by offset and limit."""
SIGNALS = ("TERM", "INT", "KILL", "HUP", "QUIT", "USR1", "USR2", "STOP", "CONT")

Named = Annotated[WorkspaceSpec, param("The workspace.")]
Described = Annotated[
    WorkspaceSpec,
    param(
        "The workspace, as workspace.yaml says it.",
        "--config",
        metavar="FILE",
        parse=load_workspace,
    ),
]
"""A workspace: on the command line a file, for agents an object."""
Nodes = Annotated[tuple[str, ...], param("Only this node.", "--node", metavar="NODE")]
Root = Annotated[
    str,
    param("Another directory to look for workspaces in.", metavar="DIR", operator_only=True),
]
Tag = Annotated[str, param("The name of the run.", argument=True)]


@dataclass(frozen=True, slots=True)
class StatusOptions:
    nodes: Nodes = ()
    """All if empty."""
    root: Root = DEFAULT_ROOT

    def __post_init__(self) -> None:
        names.check_root(self.root, "root")


@dataclass(frozen=True, slots=True)
class GpusOptions:
    nodes: Nodes = ()
    """All if empty."""
    root: Root = DEFAULT_ROOT

    def __post_init__(self) -> None:
        names.check_root(self.root, "root")


@dataclass(frozen=True, slots=True)
class DiffOptions:
    workspace: Named


@dataclass(frozen=True, slots=True)
class CreateOptions:
    workspace: Described


@dataclass(frozen=True, slots=True)
class SyncOptions:
    workspace: Named
    archive: Annotated[Upload, param("A tar, gzipped or not, of all files that should be there.")]
    subdir: Annotated[str, param("Directory in the workspace.")] = "code"
    delete: Annotated[bool, param("Remove files that are not in the archive.")] = False
    excludes: Annotated[
        tuple[str, ...], param("Patterns of files that are neither sent nor removed.")
    ] = ()
    offset: Annotated[
        int,
        param(
            "Where in the one file of the archive this part goes on: large files are sent in parts."
        ),
    ] = 0

    def __post_init__(self) -> None:
        names.check_subdir(self.subdir)
        check_excludes(self.excludes)
        if self.offset < 0:
            raise InputError(f"{self.offset} is negative", where="offset")
        if self.offset and self.delete:
            raise InputError("is for whole directories, not for a part of a file", where="delete")


@dataclass(frozen=True, slots=True)
class LocalSyncOptions(SyncOptions):
    """For people, who have the files on this machine. Agents cannot make one of these."""

    archive: Upload = field(default_factory=Upload)
    local: str = ""
    """A file or directory."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    workspace: Named
    tag: Annotated[str, param("The name of the run.")]
    command: Annotated[tuple[str, ...], param("The program and its arguments.")]
    gpus: Annotated[
        tuple[int, ...],
        param("Indices of GPUs of the host to bind; those of the workspace if none are given."),
    ] = ()
    env: Annotated[Mapping[str, str], param("Environment variables.")] = field(default_factory=dict)
    limits: Annotated[Limits, param("CPUs and memory that the run may take.")] = field(
        default_factory=Limits
    )

    def __post_init__(self) -> None:
        names.check_tag(self.tag)
        if not self.command:
            raise InputError("is empty", where="command", hint="write the command after --")
        for word in self.command:
            names.check_word(word, "command")
        for name, value in self.env.items():
            names.check_word(value, f"env.{names.check_variable(name)}")
        names.check_amount(self.command, self.env)
        if len(set(self.gpus)) != len(self.gpus):
            raise InputError(f"{list(self.gpus)} names the same GPU twice", where="gpus")


@dataclass(frozen=True, slots=True)
class PsOptions:
    workspace: Described


@dataclass(frozen=True, slots=True)
class LogsOptions:
    workspace: Named
    tag: Tag
    tail: Annotated[int | None, param("Only the last lines, so many; all if not given.")] = None
    """All means as far as one answer may be long."""
    grep: Annotated[str, param("Only lines that match this regular expression (RE2).")] = ""
    """With `tail`, the last of those."""

    def __post_init__(self) -> None:
        names.check_tag(self.tag)
        check_pattern(self.grep, "grep")
        if self.tail is not None and self.tail < 0:
            raise InputError(f"{self.tail} is negative", where="tail")


@dataclass(frozen=True, slots=True)
class FetchOptions:
    workspace: Named
    path: Annotated[str, param("A file or directory, relative to the workspace.", argument=True)]
    offset: Annotated[int, param("With limit: where in the file the part begins.")] = 0
    limit: Annotated[
        int | None,
        param(
            "Only so many bytes of a file, as they are and not as a tar; of a directory only the "
            "names of what is in it. So files of any size can be fetched."
        ),
    ] = None

    def __post_init__(self) -> None:
        names.check_path(self.path)
        if self.offset < 0:
            raise InputError(f"{self.offset} is negative", where="offset")
        if self.offset and self.limit is None:
            raise InputError("is of a part of a file", where="offset", hint="give a limit, too")
        if self.limit is not None and not 0 < self.limit <= LARGEST_PART:
            raise InputError(f"{self.limit} is not between 1 and {LARGEST_PART}", where="limit")


def _signal(text: str) -> str:
    return text.upper().removeprefix("SIG")


@dataclass(frozen=True, slots=True)
class KillOptions:
    workspace: Described
    tag: Tag
    signal: Annotated[str, param("TERM, INT, KILL, USR1...", metavar="NAME", parse=_signal)] = (
        "TERM"
    )

    def __post_init__(self) -> None:
        names.check_tag(self.tag)
        if self.signal not in SIGNALS:
            raise InputError(
                f"{self.signal!r} is not a signal",
                where="signal",
                hint=f"there are: {', '.join(SIGNALS)}",
            )


@dataclass(frozen=True, slots=True)
class DestroyOptions:
    workspace: Described


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    workspace: Named


@dataclass(frozen=True, slots=True)
class ExportOptions:
    name: Annotated[str, param("The workspace.", argument=True)]
    node: Annotated[str, param("Node that it is on.", metavar="NODE")]
    root: Annotated[str, param("Directory that it is in on the node.", metavar="DIR")] = (
        DEFAULT_ROOT
    )
