"""The shards of a job: what they are, and how all of them are called at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kvestigate_client.gateway import CybernetClient

T = TypeVar("T")

JOB_OPERATIONS = (
    "report.run",
    "workspace.create",
    "workspace.sync",
    "workspace.run",
    "workspace.ps",
    "workspace.destroy",
)
"""What a cyberspace has to allow for a DistributedJob."""
_TOGETHER = 8


class JobFailed(Exception):
    """Some shards did not end with 0; `results` has them all."""

    def __init__(self, message: str, results: Sequence[ShardResult]) -> None:
        super().__init__(message)
        self.results = list(results)


class NotCleanedUp(Exception):
    """Workspaces that could not be destroyed are still there; the job still has them."""

    def __init__(self, message: str, left: Sequence[Shard]) -> None:
        super().__init__(message)
        self.left = list(left)


@dataclass(frozen=True)
class ShardTask:
    """What one shard runs."""

    cmd: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    rank: int | None = None
    """None: its place in the list."""
    tag: str = "main"


@dataclass(frozen=True)
class Shard:
    """One workspace of a job."""

    rank: int
    node: str
    workspace: Mapping[str, Any]
    """The specification with which it is named in every call."""


@dataclass(frozen=True)
class ShardResult:
    rank: int
    node: str
    tag: str
    exit_code: int | None
    """None if nobody knows: the node went down meanwhile."""


def call(client: CybernetClient, operation: str, shard: Shard, **parameters: Any) -> Any:
    """What an operation on the workspace of a shard answers."""
    return client.call(operation, {"workspace": shard.workspace, **parameters})


def each(shards: Sequence[Shard], do: Callable[[Shard], T]) -> list[T]:
    """For all of them at once; the first failure is raised when all have ended."""
    if not shards:
        return []
    with ThreadPoolExecutor(min(_TOGETHER, len(shards))) as pool:
        return list(pool.map(do, shards))
