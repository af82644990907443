"""Which tasks wait and run. Pure."""

from __future__ import annotations

from kvestigate.jobs.answers import State, TaskListResponse


def queued(listed: TaskListResponse) -> TaskListResponse:
    """What has not ended, oldest first: the order in which it was asked for."""
    going = [task for task in listed.tasks if task.status in (State.PENDING, State.RUNNING)]
    return TaskListResponse(tuple(sorted(going, key=lambda task: (task.created_at, task.task_id))))
