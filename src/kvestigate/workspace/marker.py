"""The file that makes a directory a workspace. Pure.

It holds what no other place knows: who made the workspace, which GPUs it was given, and whether
the node was cordoned for it. What has no marker is never removed.
"""

from __future__ import annotations

import msgspec

from kvestigate.errors import KvestigateError
from kvestigate.workspace.spec import WorkspaceSpec

MARKER = ".kvestigate-workspace.json"


class GpuId(msgspec.Struct, frozen=True):
    index: int
    """As the host counts them when it is given."""
    uuid: str


class Marker(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="Workspace"):
    workspace: WorkspaceSpec
    created_at: str
    owner: str = ""
    """Whoever the gateway said it was; empty if it was made by hand."""
    gpus: tuple[GpuId, ...] = ()
    cordoned: bool = False
    """Whether the node was open before, and is closed because of us."""


def encode(marker: Marker) -> str:
    """One line."""
    return msgspec.json.encode(marker).decode()


def decode(text: str, path: str) -> Marker | None:
    """The marker of the directory `path`; None if it is not one of that directory."""
    try:
        found = msgspec.json.decode(text, type=Marker)
    except (msgspec.DecodeError, KvestigateError):
        return None
    return found if found.workspace.path == path else None
