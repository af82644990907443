"""`diff` and `apply`: a workspace together with the local files that belong into it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kvestigate.operation import Context
from kvestigate.workspace.archives import Directory
from kvestigate.workspace.lifecycle import Creation, compare, create
from kvestigate.workspace.options import ApplyOptions, CreateOptions, DiffOptions
from kvestigate.workspace.plan import Change, Plan
from kvestigate.workspace.spec import SourceSpec, WorkspaceSpec
from kvestigate.workspace.sync import Synced, Wanted, bring


@dataclass(frozen=True, slots=True)
class Difference:
    workspace: str
    node: str
    exists: bool
    changes: tuple[Change, ...]
    plan: Plan | None
    """What `create` would do; None if it would refuse."""
    sources: tuple[Synced, ...] = ()
    """What `apply` would send."""


@dataclass(frozen=True, slots=True)
class Application:
    creation: Creation
    sources: tuple[Synced, ...]

    @property
    def changes_anything(self) -> bool:
        files_differ = any(source.sent or source.removed for source in self.sources)
        return bool(self.creation.plan.steps) or files_differ


async def diff(context: Context, options: DiffOptions) -> Difference:
    """How a workspace and its sources differ from the description."""
    spec = options.workspace
    wanted = _wanted(options.workspace)
    found = await compare(context, spec)
    sources = tuple([await bring(context, files) for files in wanted])
    return Difference(spec.name, spec.node, found.exists, found.changes, found.plan, sources)


async def apply(context: Context, options: ApplyOptions) -> Application:
    """Make the workspace, and send what changed."""
    wanted = _wanted(options.workspace)
    creation = await create(context, CreateOptions(options.workspace))
    return Application(creation, tuple([await bring(context, files) for files in wanted]))


def _wanted(spec: WorkspaceSpec) -> list[Wanted]:
    return [_files(spec, source) for source in spec.sources]


def _files(spec: WorkspaceSpec, source: SourceSpec) -> Wanted:
    files = Directory(Path(source.local), source.excludes)
    return Wanted(spec, source.subdir, files, excludes=source.excludes)
