"""What the operations of workspaces are asked with.

Those with `apply` do nothing without it but say exactly what they would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvestigate.errors import InputError
from kvestigate.workspace import names
from kvestigate.workspace.limits import Limits
from kvestigate.workspace.spec import DEFAULT_ROOT, WorkspaceSpec
from kvestigate.workspace.uploads import Upload

SIGNALS = ("TERM", "INT", "KILL", "HUP", "QUIT", "USR1", "USR2", "STOP", "CONT")


@dataclass(frozen=True, slots=True)
class StatusOptions:
    nodes: tuple[str, ...] = ()
    """All if empty."""
    root: str = DEFAULT_ROOT
    """Where to look."""

    def __post_init__(self) -> None:
        names.check_root(self.root, "root")


@dataclass(frozen=True, slots=True)
class GpusOptions:
    nodes: tuple[str, ...] = ()
    """All if empty."""
    root: str = DEFAULT_ROOT
    """Where workspaces are that may have reserved some."""

    def __post_init__(self) -> None:
        names.check_root(self.root, "root")


@dataclass(frozen=True, slots=True)
class DiffOptions:
    workspace: WorkspaceSpec


@dataclass(frozen=True, slots=True)
class CreateOptions:
    workspace: WorkspaceSpec
    owner: str = ""
    """Whom the gateway takes the caller for."""
    apply: bool = False


@dataclass(frozen=True, slots=True)
class SyncOptions:
    workspace: WorkspaceSpec
    archive: Upload
    """A tar, gzipped or not, of all files that should be there."""
    subdir: str = "code"
    delete: bool = False
    """Whether to remove what is there and not in the archive."""
    excludes: tuple[str, ...] = ()
    """Patterns of what is neither sent nor removed."""
    offset: int = 0
    """Where the one file of the archive goes on, of which the part before is there: large files
    are sent in parts."""
    apply: bool = False

    def __post_init__(self) -> None:
        names.check_subdir(self.subdir)
        if self.offset < 0:
            raise InputError(f"{self.offset} is negative", where="offset")
        if self.offset and self.delete:
            raise InputError("is for whole directories, and a part is none", where="delete")


@dataclass(frozen=True, slots=True)
class RunOptions:
    workspace: WorkspaceSpec
    tag: str
    command: tuple[str, ...]
    gpus: tuple[int, ...] = ()
    """As the host counts them; those of the workspace if empty."""
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    apply: bool = False

    def __post_init__(self) -> None:
        names.check_tag(self.tag)
        if not self.command:
            raise InputError("is empty", where="command", hint="what should run stands after --")
        for word in self.command:
            names.check_word(word, "command")
        for name, value in self.env.items():
            names.check_word(value, f"env.{names.check_variable(name)}")
        if len(set(self.gpus)) != len(self.gpus):
            raise InputError(f"{list(self.gpus)} names one twice", where="gpus")


@dataclass(frozen=True, slots=True)
class PsOptions:
    workspace: WorkspaceSpec


@dataclass(frozen=True, slots=True)
class LogsOptions:
    workspace: WorkspaceSpec
    tag: str
    tail: int | None = None
    """How many lines from the end; all if None, as far as one answer may be long."""

    def __post_init__(self) -> None:
        names.check_tag(self.tag)
        if self.tail is not None and self.tail < 0:
            raise InputError(f"{self.tail} is negative", where="tail")


@dataclass(frozen=True, slots=True)
class FetchOptions:
    workspace: WorkspaceSpec
    path: str
    """A file or directory, relative to the workspace."""

    def __post_init__(self) -> None:
        names.check_path(self.path)


@dataclass(frozen=True, slots=True)
class KillOptions:
    workspace: WorkspaceSpec
    tag: str
    signal: str = "TERM"
    apply: bool = False

    def __post_init__(self) -> None:
        names.check_tag(self.tag)
        if self.signal not in SIGNALS:
            raise InputError(
                f"{self.signal!r} is no signal",
                where="signal",
                hint=f"there are: {', '.join(SIGNALS)}",
            )


@dataclass(frozen=True, slots=True)
class DestroyOptions:
    workspace: WorkspaceSpec
    apply: bool = False
