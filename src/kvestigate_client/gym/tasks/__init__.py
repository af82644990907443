"""The tasks that come with the SDK, by name."""

from __future__ import annotations

from collections.abc import Mapping

from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks import cost, gpu, repair, scaling, security

TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (*repair.TASKS, *scaling.TASKS, *security.TASKS, *cost.TASKS, *gpu.TASKS)
}
