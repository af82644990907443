"""The answers of the launcher, in process and over its REST API. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

HINT = "x-hint"
"""The header of a refusal with the way out, percent-encoded."""


def stamp(when: datetime | None) -> str:
    """`2025-10-05T12:34:56.789012`: UTC without a zone; Kubernetes itself counts whole seconds."""
    return "" if when is None else when.replace(tzinfo=None).isoformat(timespec="microseconds")


class State(StrEnum):
    """How a task fares."""

    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class TaskSubmitResponse:
    task_id: str
    status: str
    message: str
    """The ID in one line, then a line for each field that is ignored in this cluster."""


@dataclass(frozen=True, slots=True)
class TaskMetadata:
    job_name: str
    """The first node's job; of a task of several nodes the name that they have in common."""
    namespace: str
    num_nodes: int
    node_jobs: tuple[str, ...]
    succeeded_nodes: int
    failed_nodes: int
    running_nodes: int
    pending_nodes: int


@dataclass(frozen=True, slots=True)
class TaskStatus:
    task_id: str
    name: str
    status: State
    created_at: str
    """`2025-10-05T12:34:56.789012`, UTC."""
    updated_at: str
    username: str
    metadata: TaskMetadata


@dataclass(frozen=True, slots=True)
class TaskListResponse:
    tasks: tuple[TaskStatus, ...]


@dataclass(frozen=True, slots=True)
class TaskStopResponse:
    task_id: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class TaskStopAllResponse:
    count: int
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class VolumeCreateResponse:
    volume_id: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class VolumeMetadata:
    pvc_name: str
    namespace: str


@dataclass(frozen=True, slots=True)
class VolumeStatus:
    volume_id: str
    name: str
    size: str
    storage_class: str | None
    access_modes: tuple[str, ...]
    status: str
    """The claim's phase: `Pending`, `Bound` or `Lost`."""
    created_at: str
    username: str
    metadata: VolumeMetadata


@dataclass(frozen=True, slots=True)
class VolumeListResponse:
    volumes: tuple[VolumeStatus, ...]


@dataclass(frozen=True, slots=True)
class VolumeDeleteResponse:
    volume_id: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class VolumeResizeResponse:
    volume_id: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class WhoAmI:
    username: str
    role: str
    """`user` or `admin`."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """What is remembered of a task, also when it is gone."""

    task_id: str
    name: str
    status: str
    """`active`, `completed`, `failed`, `stopped`; `unknown` if it was removed unseen."""
    created_at: str
    ended_at: str
    """Empty while it may still run."""
    username: str
    num_nodes: int
    gpus: int
    """Of all nodes together."""
    reason: str


@dataclass(frozen=True, slots=True)
class HistoryResponse:
    tasks: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one port of a task is reached."""

    port: int
    address: str
    """`10.96.0.12:8080`; empty until there is one."""
    name: str
    """`task-abc12345-ports.default.svc:8080`, for those in the cluster."""
    external: str
    """`203.0.113.7:8080` where the Service has an address outside; else empty."""


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    task_id: str
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node of a task as it is now."""

    index: int
    phase: str
    """`Pending`, `Running`, `Succeeded` or `Failed`; what it waits for, if that is known."""
    machine: str
    """The cluster's node; empty until there is one."""
    gpus: int
    started_at: str
    ended_at: str
    reason: str


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task with its nodes, for those who watch it."""

    task: TaskStatus
    nodes: tuple[NodeView, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    task_id: str
    status: State
    causes: tuple[str, ...]
    """`node-0: no node has 8 GPUs free`"""
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanResponse:
    """The exact objects that a submission would make, but for the values of secrets."""

    manifests: tuple[dict[str, Any], ...]
    ignored: tuple[str, ...] = ()
    """`resources.use_spot: no node of this cluster is a spot instance`"""


@dataclass(frozen=True, slots=True)
class MissingPieces:
    missing: tuple[str, ...]
    """SHA-256 of the pieces that have yet to be sent."""


@dataclass(frozen=True, slots=True)
class VolumeFiles:
    volume: str
    path: str
    lines: tuple[str, ...]
    """As `ls -lA` writes them."""
