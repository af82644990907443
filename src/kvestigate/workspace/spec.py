"""A workspace as people write it down: `workspace.yaml`. PURE, but for reading that file.

Whatever is made is valid: mistakes are raised where a value is made of them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from kvestigate.errors import InputError
from kvestigate.kube.documents import Mistakes, read, written
from kvestigate.operation import param
from kvestigate.workspace import names
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.sizes import parse_size

API_VERSION = "v1"

LAYOUT = ("code", "env", "datasets", "checkpoints", "logs", "pids")
"""The directories that every workspace has."""


class StorageMode(enum.StrEnum):
    """What of a workspace is in memory, and so gone when the node restarts."""

    DISK = "disk"
    HYBRID = "hybrid"
    """One directory is."""
    ALL_TMPFS = "all-tmpfs"


@dataclass(frozen=True, slots=True)
class StorageSpec:
    mode: Annotated[
        StorageMode,
        param(
            "Where the files are: `disk`; `all-tmpfs`, all in the host's memory and gone when the "
            "node restarts; or `hybrid`, one directory in memory and the rest on disk."
        ),
    ] = StorageMode.HYBRID
    tmpfs_size: Annotated[
        str, param("How much of the host's memory the files may take: `500Gi`. `500G` is the same.")
    ] = "500G"
    hybrid_tmpfs_path: Annotated[str, param("The directory that is in memory in hybrid mode.")] = (
        "datasets"
    )

    def __post_init__(self) -> None:
        parse_size(self.tmpfs_size)
        names.check_subdir(self.hybrid_tmpfs_path, "workspace.storage.hybrid_tmpfs_path")

    @property
    def tmpfs_bytes(self) -> int:
        """What it may take of the host's memory."""
        return 0 if self.mode is StorageMode.DISK else parse_size(self.tmpfs_size)


@dataclass(frozen=True, slots=True)
class GpuSpec:
    reserve: Annotated[int, param("How many free GPUs to reserve.")] = 0
    indices: Annotated[
        tuple[int, ...], param("Instead of `reserve`: which GPUs, as the host counts them.")
    ] = ()
    cordon_node: Annotated[
        bool, param("Whether Kubernetes places no pods on the node meanwhile.")
    ] = True

    def __post_init__(self) -> None:
        if self.reserve < 0:
            raise InputError(f"{self.reserve} is negative", where="workspace.gpu.reserve")
        if any(index < 0 for index in self.indices):
            raise InputError(
                f"{list(self.indices)} has a negative number in it", where="workspace.gpu.indices"
            )
        if len(set(self.indices)) != len(self.indices):
            raise InputError(
                f"{list(self.indices)} names the same GPU twice", where="workspace.gpu.indices"
            )
        if self.reserve and self.indices:
            raise InputError(
                f"{list(self.indices)} are given, and reserve: {self.reserve} too",
                where="workspace.gpu.indices",
                hint="give reserve to have free ones chosen, or indices to name them",
            )


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A local directory that `apply` keeps a directory of the workspace equal to."""

    local: str
    """Relative to the file that says so."""
    subdir: str = "code"
    excludes: tuple[str, ...] = ()
    """Patterns of what stays behind: `*.pyc`, `.git`."""

    def __post_init__(self) -> None:
        if not self.local:
            raise InputError("is empty", where="workspace.sources.local")
        names.check_subdir(self.subdir, "workspace.sources.subdir")


@dataclass(frozen=True, slots=True)
class WorkspaceSpec:
    name: Annotated[str, param("The name of the workspace.")]
    node: Annotated[str, param("The node whose host the workspace is on.")]
    api_version: Annotated[str, param("The version of this description.")] = API_VERSION
    root: Annotated[str, param("The directory of the host that it is in.", operator_only=True)] = (
        DEFAULT_ROOT
    )
    storage: Annotated[StorageSpec, param("Where its files are, and how many there may be.")] = (
        field(default_factory=StorageSpec)
    )
    gpu: Annotated[GpuSpec, param("Which GPUs it reserves.")] = field(default_factory=GpuSpec)
    sources: Annotated[
        tuple[SourceSpec, ...],
        param("Local directories that `apply` brings into it.", operator_only=True),
    ] = ()

    def __post_init__(self) -> None:
        names.check_name(self.name)
        names.check_node(self.node)
        names.check_root(self.root)
        if self.api_version != API_VERSION:
            raise InputError(
                f"{self.api_version!r} is not known",
                where="workspace.api_version",
                hint=f"this version of kvestigate reads {API_VERSION}",
            )

    @property
    def path(self) -> str:
        return f"{self.root}/{self.name}"

    @property
    def tmpfs_path(self) -> str:
        """Where memory is mounted; empty if nowhere."""
        match self.storage.mode:
            case StorageMode.DISK:
                return ""
            case StorageMode.HYBRID:
                return f"{self.path}/{self.storage.hybrid_tmpfs_path}"
            case StorageMode.ALL_TMPFS:
                return self.path


def parse_workspace(document: Any, source: str = "") -> WorkspaceSpec:
    """The workspace that a document describes under `workspace:`."""
    if not isinstance(document, Mapping) or "workspace" not in document:
        raise InputError(
            "there is no `workspace:` in it",
            where=source or None,
            hint="a workspace needs at least: workspace: {name: NAME, node: NODE}",
        )
    if extra := [key for key in document if key != "workspace"]:
        raise InputError(
            f"{extra[0]}: no such field",
            where=source or None,
            hint="everything about a workspace stands under `workspace:`",
        )
    try:
        return read(WorkspaceSpec, document["workspace"], "workspace")
    except Mistakes as found:
        raise InputError(found.message, where=source or None, hint=found.hint) from None


def load_workspace(path: str | Path) -> WorkspaceSpec:
    """The workspace of a YAML file.

    Its sources become absolute, because the description outlives the file: a marker on the host
    keeps it, and `export` writes it to another place.
    """
    from kvestigate.kube.yaml_documents import load
    from kvestigate.kube.yaml_scalars import Dialect

    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    documents = load(text, str(path), dialect=Dialect.PYTHON)
    if len(documents) > 1:
        raise InputError(
            f"has {len(documents)} documents; a workspace is one document", where=str(path)
        )
    spec = parse_workspace(documents[0].value if documents else None, str(path))
    return replace(spec, sources=tuple(_anchored(it, Path(path).parent) for it in spec.sources))


def _anchored(source: SourceSpec, directory: Path) -> SourceSpec:
    return replace(source, local=str((directory / Path(source.local).expanduser()).resolve()))


def dump_workspace(spec: WorkspaceSpec) -> str:
    """YAML that `load_workspace` reads as the same workspace; what is so by default is left out,
    but for what decides where things are."""
    from kvestigate.render.encode import to_yaml

    always = {"name": spec.name, "node": spec.node, "api_version": spec.api_version}
    return to_yaml({"workspace": {**always, "root": spec.root, **written(spec)}})
