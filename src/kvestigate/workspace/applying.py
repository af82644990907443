"""`diff` and `apply`: a workspace together with the local files that belong into it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kvestigate.client.access import Access
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import DEFAULT
from kvestigate.workspace.archives import Directory
from kvestigate.workspace.lifecycle import Creation, Difference, create, diff
from kvestigate.workspace.options import CreateOptions, DiffOptions
from kvestigate.workspace.spec import SourceSpec, WorkspaceSpec
from kvestigate.workspace.sync import Synced, Wanted, bring


@dataclass(frozen=True, slots=True)
class Comparison:
    workspace: Difference
    sources: tuple[Synced, ...]


@dataclass(frozen=True, slots=True)
class Application:
    creation: Creation
    sources: tuple[Synced, ...]


async def compared(
    access: Access, spec: WorkspaceSpec, base: Path, via: NodeAccess = DEFAULT
) -> Comparison:
    """What is not as it should be; sources are relative to `base`."""
    wanted = [_wanted(spec, source, base) for source in spec.sources]
    found = await diff(access, DiffOptions(spec), via)
    return Comparison(
        found, tuple([await bring(access, it, apply=False, via=via) for it in wanted])
    )


async def applied(
    access: Access, spec: WorkspaceSpec, base: Path, *, apply: bool, via: NodeAccess = DEFAULT
) -> Application:
    """Make the workspace, and send what changed."""
    wanted = [_wanted(spec, source, base) for source in spec.sources]
    creation = await create(access, CreateOptions(spec, apply=apply), via)
    return Application(
        creation, tuple([await bring(access, it, apply=apply, via=via) for it in wanted])
    )


def _wanted(spec: WorkspaceSpec, source: SourceSpec, base: Path) -> Wanted:
    place = base / Path(source.local).expanduser()
    files = Directory(place, source.excludes)
    return Wanted(spec, source.subdir, files, excludes=source.excludes)
