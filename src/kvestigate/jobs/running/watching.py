"""A task and its nodes, again after each change, until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.jobs.accounts import records
from kvestigate.jobs.answers import TaskView
from kvestigate.jobs.running.keeping import JOBS, keep_quietly
from kvestigate.jobs.running.node_views import node_views
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.statuses import TaskJob, node_index, pod_selector, task_status
from kvestigate.kube.views.pods import Pod

_REPLACED_SECONDS = 60.0
"""How long it may take until new jobs are there in place of old ones."""


async def views(
    api: Api, jobs: Sequence[TaskJob], *, keeps: bool
) -> AsyncGenerator[TaskView, None]:
    """The current view, then one for each change. `keeps`: end the task here if a node fails."""
    task = _Task(api, jobs)
    await task.read_pods()
    following = [asyncio.ensure_future(watch()) for watch in (task.follow_jobs, task.follow_pods)]
    shown: TaskView | None = None
    try:
        while task.jobs or await task.returns():
            view = task.view()
            again = await keep_quietly(api, list(task.jobs.values())) if keeps else None
            if view != shown:
                shown = view
                yield view
            if records.finished(view.task):
                return
            await _change(task.changed, following, again)
    finally:
        for watch in following:
            watch.cancel()
        await asyncio.gather(*following, return_exceptions=True)


class _Task:
    """The latest state of the jobs and pods of one task."""

    def __init__(self, api: Api, jobs: Sequence[TaskJob]) -> None:
        self.jobs = {node_index(job): job for job in jobs}
        self.changed = asyncio.Event()
        self._restarting = False
        self._api = api
        self._pods: dict[str, Pod] = {}
        task_id = jobs[0].metadata.labels[labels.TASK_ID]
        self._selection = Selection(api.namespace, labels=f"{labels.TASK_ID}={task_id}")
        self._pods_selection = Selection(api.namespace, labels=pod_selector(jobs))

    async def read_pods(self) -> None:
        pods = await self._api.list(PODS, self._pods_selection, type=Pod)
        self._pods = {pod.metadata.name: pod for pod in pods.items}

    async def follow_jobs(self) -> None:
        async with self._api.watch(JOBS, self._selection, type=TaskJob) as events:
            async for event in events:
                index = node_index(event.object)
                if event.type == "DELETED":
                    self.jobs.pop(index, None)
                    notes = event.object.metadata.annotations
                    self._restarting = self._restarting or labels.RESTARTING in notes
                else:
                    self.jobs[index] = event.object
                self.changed.set()

    async def follow_pods(self) -> None:
        async with self._api.watch(PODS, self._pods_selection, type=Pod) as events:
            async for event in events:
                if event.type == "DELETED":
                    self._pods.pop(event.object.metadata.name, None)
                else:
                    self._pods[event.object.metadata.name] = event.object
                self.changed.set()

    async def returns(self) -> bool:
        """Whether jobs that were replaced are back after a moment."""
        if not self._restarting:
            return False
        try:
            async with asyncio.timeout(_REPLACED_SECONDS):
                while not self.jobs:
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return False
        return True

    def view(self) -> TaskView:
        jobs = list(self.jobs.values())
        return TaskView(task_status(jobs), node_views(jobs, list(self._pods.values())))


async def _change(
    changed: asyncio.Event, following: Sequence[asyncio.Future[None]], seconds: float | None
) -> None:
    """Wait for a change, or until a deadline may have passed.

    A watch that fails for good is a failure of ours.
    """
    waiting = asyncio.ensure_future(changed.wait())
    either: set[asyncio.Future[Any]] = {waiting, *following}
    try:
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    for watch in following:
        if watch.done():
            watch.result()
    changed.clear()
