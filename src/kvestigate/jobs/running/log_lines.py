"""The log lines of all nodes of a task, in order of arrival, until all nodes have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from kvestigate.aio.backoff import Backoff
from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.client.logs import LastSecond, LogOptions
from kvestigate.errors import (
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    InternalError,
    NotFound,
    ServiceUnavailable,
)
from kvestigate.jobs.answers import State
from kvestigate.jobs.interface import LogRequest
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.statuses import (
    TaskJob,
    node_index,
    node_state,
    pod_selector,
    task_container,
)
from kvestigate.kube import builtins
from kvestigate.kube.views.pods import Pod

START_SECONDS = 300.0
"""How long the first pod of a node may take to start."""

_AHEAD = 1000
"""Lines that are read before the reader takes them; then the nodes' streams wait."""

_END_SECONDS = 30.0
"""How long a job may take to notice that its pod has ended."""

_ATTEMPTS = 15
"""Requests for a log, one after the other, that fail: about a minute."""

JOBS = builtins.resource("jobs.batch")
_ENDS = (State.COMPLETED, State.FAILED)
_FINISHED = ("Succeeded", "Failed")


async def task_lines(
    api: Api, jobs: Sequence[TaskJob], request: LogRequest
) -> AsyncGenerator[bytes, None]:
    """Lines without newlines, with `node-0 | ` before them where there are several nodes."""
    wanted = {node_index(job): job for job in jobs}
    if request.node is not None:
        if request.node not in wanted:
            raise NotFound(
                f"the task has no node {request.node}", hint=f"the nodes are 0 to {max(wanted)}"
            )
        wanted = {request.node: wanted[request.node]}
    queue: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
    reading = asyncio.create_task(_Reader(api, wanted, request, queue, len(jobs) > 1).run())
    try:
        while (line := await queue.get()) is not None:
            yield line
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class _Reader:
    """Starts to read each node's log when its container has started."""

    def __init__(
        self,
        api: Api,
        jobs: dict[int, TaskJob],
        request: LogRequest,
        queue: asyncio.Queue[bytes | None],
        prefixed: bool,
    ) -> None:
        self._api = api
        self._request = request
        self._queue = queue
        self._prefixed = prefixed
        self._waiting = set(jobs)
        self._jobs = jobs
        self._tasks = asyncio.TaskGroup()
        self._task_id = next(iter(jobs.values())).metadata.labels[labels.TASK_ID]
        selector = f"{labels.TASK_ID}={self._task_id}"
        self._selection = Selection(api.namespace, labels=selector)
        pods = pod_selector(list(jobs.values()))
        self._pods = Selection(api.namespace, labels=pods)

    async def run(self) -> None:
        try:
            try:
                async with self._tasks:
                    await self._start_all()
            except BaseExceptionGroup as failed:
                raise failed.exceptions[0] from None
            if self._request.follow:
                await self._ended()
        finally:
            # Who cancels us reads no more, and a full queue would hold us for ever.
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                await self._queue.put(None)

    async def _ended(self) -> None:
        """Wait until the jobs have ended, so that the next status is the final one."""
        running = set(self._jobs)
        jobs = self._api.watch(JOBS, self._selection, type=TaskJob)
        try:
            async with asyncio.timeout(_END_SECONDS), jobs:
                async for event in jobs:
                    finished = node_state(event.object) in _ENDS
                    if event.type == "DELETED" or finished:
                        running.discard(node_index(event.object))
                    if not running:
                        return
        except TimeoutError:
            return  # the log is whole all the same

    async def _start_all(self) -> None:
        task_id, selection = self._task_id, self._pods
        pods = await self._api.list(PODS, selection, type=Pod)
        present = {node_index(pod) for pod in pods.items}
        for index, job in self._jobs.items():
            if index not in present and node_state(job) in _ENDS:
                self._waiting.discard(index)  # its pod has been cleaned up
        for pod in pods.items:
            self._consider(pod)
        if not self._waiting or not self._request.follow:
            return
        try:
            async with (
                asyncio.timeout(START_SECONDS),
                self._api.watch(
                    PODS, selection, resource_version=pods.metadata.resource_version, type=Pod
                ) as events,
            ):
                async for event in events:
                    if event.type == "DELETED":
                        self._waiting.discard(node_index(event.object))
                    else:
                        self._consider(event.object)
                    if not self._waiting:
                        return
        except TimeoutError:
            nodes = ", ".join(f"node-{index}" for index in sorted(self._waiting))
            raise DeadlineExceeded(
                f"{nodes} did not start within {START_SECONDS:g} s",
                hint=f"`k8s-cli jobs why {task_id}` shows the reason",
            ) from None

    def _consider(self, pod: Pod) -> None:
        index = node_index(pod)
        if index in self._waiting and (_started(pod) or pod.status.phase in _FINISHED):
            self._waiting.discard(index)
            self._tasks.create_task(self._read(pod, index))

    async def _read(self, pod: Pod, index: int) -> None:
        prefix = f"node-{index} | ".encode() if self._prefixed else b""
        if not _started(pod):
            why = f"{pod.status.reason or pod.status.phase}: {pod.status.message}"
            await self._queue.put(prefix + why.encode())
            return
        try:
            async with aclosing(self._lines(pod, index)) as lines:
                async for line in lines:
                    await self._queue.put(prefix + line)
        except BadRequest as error:  # the container ended before it began: there is no log
            await self._queue.put(prefix + (_ending(pod) or error.message).encode())

    async def _lines(self, pod: Pod, index: int) -> AsyncGenerator[bytes, None]:
        """A node's log to its end. That a stream ends does not say so: a kubelet may be restarted,
        and the API server then ends the stream as if all had been said."""
        request = self._request
        after = request.after.get(index, "")
        options = LogOptions(
            container=task_container(pod),
            follow=request.follow,
            timestamps=True,
            tail=None if after else request.tail,
            since_seconds=None if after else request.since_seconds,
            since_time=after,
            reconnect=request.follow,
        )
        seen = LastSecond()
        backoff = Backoff(initial=0.2, cap=5.0)
        attempts = 0
        while True:
            over = not request.follow or _over(await self._now(pod))
            try:
                lines = self._api.logs(pod.metadata.name, options, namespace=self._api.namespace)
                async with aclosing(lines):
                    async for line in lines:
                        if seen.is_new(line):
                            attempts = 0
                            backoff.reset()
                            yield line if request.timestamps else line.partition(b" ")[2]
                if over:
                    return
            except (InternalError, ServiceUnavailable, ConnectionFailed, NotFound) as failure:
                attempts += 1
                if not seen.second or attempts > _ATTEMPTS:
                    raise
                # A kubelet that was just restarted does not know its pods at once.
                if isinstance(failure, NotFound) and await self._now(pod) is None:
                    return
            await asyncio.sleep(backoff.next())
            if seen.second:
                options = msgspec.structs.replace(
                    options, tail=None, since_seconds=None, since_time=f"{seen.second}Z"
                )
                seen.replay()

    async def _now(self, pod: Pod) -> Pod | None:
        """The pod in its current state; None if it was deleted."""
        selection = Selection(self._api.namespace, fields=f"metadata.name={pod.metadata.name}")
        pods = await self._api.list(PODS, selection, type=Pod)
        return pods.items[0] if pods.items else None


def _over(pod: Pod | None) -> bool:
    """Whether the log is complete: all containers have ended, or the pod was deleted."""
    if pod is None:
        return True
    statuses = pod.status.container_statuses
    return bool(statuses) and all(status.state.terminated is not None for status in statuses)


def _started(pod: Pod) -> bool:
    return any(
        status.state.running is not None or status.state.terminated is not None
        for status in pod.status.container_statuses
    )


def _ending(pod: Pod) -> str:
    """`FailedMount: ...`: why a container that wrote nothing has ended."""
    for status in pod.status.container_statuses:
        if (ended := status.state.terminated) is not None and ended.message:
            return f"{ended.reason}: {ended.message}"
    return ""
