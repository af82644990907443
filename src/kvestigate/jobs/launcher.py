"""What can be asked for, whether it is done in this process or by a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kvestigate.jobs import answers
from kvestigate.jobs.explain import Explanation

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    name: str
    size: str
    """`10Gi`"""
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which lines of a task."""

    follow: bool = True
    tail: int | None = None
    since_seconds: int | None = None
    node: int | None = None
    """One node alone."""


class Launcher(Protocol):
    """Tasks and volumes of one user; `all_users` looks at everybody's."""

    async def submit(self, document: Mapping[str, Any]) -> answers.TaskSubmitResponse: ...

    async def list_tasks(self, *, all_users: bool) -> answers.TaskListResponse: ...

    async def task(self, task_id: str) -> answers.TaskStatus: ...

    async def why(self, task_id: str) -> Explanation: ...

    async def stop(self, task_id: str) -> answers.TaskStopResponse: ...

    async def stop_all(self, *, all_users: bool) -> answers.TaskStopAllResponse: ...

    def logs(self, task_id: str, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """Lines without their newlines."""

    async def create_volume(self, request: VolumeRequest) -> answers.VolumeCreateResponse: ...

    async def list_volumes(self, *, all_users: bool) -> answers.VolumeListResponse: ...

    async def volume(self, volume_id: str) -> answers.VolumeStatus: ...

    async def delete_volume(self, volume_id: str) -> answers.VolumeDeleteResponse: ...
