"""What the launcher answers: the models of the REST API. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    """`2025-10-05T12:34:56`, UTC."""
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
