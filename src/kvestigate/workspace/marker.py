"""The file that makes a directory a workspace. Pure.

It holds what no other place on the host knows: who made the workspace, which GPUs and which user
it was given, and whether the node was cordoned for it. It is written before anything is made, and
lies beside the workspaces, where nothing that runs in one can change it. What has no marker is
never removed.
"""

from __future__ import annotations

import msgspec

from kvestigate.errors import KvestigateError
from kvestigate.workspace.fence import Fencing
from kvestigate.workspace.spec import WorkspaceSpec

STATE = ".state"
"""The directory beside the workspaces that holds their markers."""


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
    fencing: Fencing = Fencing.NONE
    uid: int = 0
    """The user that everything in it is done as; 0 for root."""


def marker_path(spec: WorkspaceSpec) -> str:
    return f"{spec.root}/{STATE}/{spec.name}.json"


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
