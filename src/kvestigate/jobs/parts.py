"""Inside a task's nodes: commands, and files that are too large for the cluster's database."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Conflict, DeadlineExceeded, InputError, KvestigateError, NotFound
from kvestigate.jobs import labels
from kvestigate.jobs.compile import CONTAINER
from kvestigate.jobs.interface import ExecRequest
from kvestigate.jobs.pieces import LARGEST_PIECE
from kvestigate.jobs.script import DONE, FILES
from kvestigate.kube.views.pods import Pod

if TYPE_CHECKING:
    from kvestigate.client.streams import Session

START_SECONDS = 300.0
_SEND_SECONDS = 120.0
_MOST_PARTS = 10**6
_ENDED = ("Succeeded", "Failed")


async def session(api: Api, task_id: str, request: ExecRequest) -> Session:
    """A command in a node that runs, or with none the task's own process."""
    pod = await _running(api, task_id, request.node, seconds=0)
    where = {"namespace": api.namespace, "container": CONTAINER}
    if not request.command:
        return api.attach(pod, stdin=request.stdin, tty=request.tty, **where)
    return api.exec(pod, request.command, stdin=request.stdin, tty=request.tty, **where)


async def present(api: Api, task_id: str, node: int) -> tuple[int, ...]:
    """The parts that a node has, so that an upload that broke off goes on where it was."""
    pod = await _running(api, task_id, node, seconds=START_SECONDS)
    # Where a container's root is a directory of the machine, the mount may come with the pod.
    listed = await _run(api, pod, f"ls {FILES} 2>/dev/null; true")
    names = [name.removeprefix("part-") for name in listed.split() if name.startswith("part-")]
    return tuple(sorted(int(name) for name in names if name.isdecimal()))


async def send(api: Api, task_id: str, node: int, index: int, content: bytes) -> None:
    """Write one part: whole and as it was sent, or not at all."""
    if not 0 <= index < _MOST_PARTS or len(content) > LARGEST_PIECE:
        raise InputError(f"part {index}: there are up to {_MOST_PARTS} of {LARGEST_PIECE} bytes")
    pod = await _running(api, task_id, node, seconds=START_SECONDS)
    target = f"{FILES}/part-{index:06}"
    digest = hashlib.sha256(content).hexdigest()
    check = f'echo "{digest}  {target}.new" | sha256sum -c - >/dev/null'
    await _run(
        api,
        pod,
        f"head -c {len(content)} > {target}.new && {check} && mv {target}.new {target}",
        content,
    )


async def end(api: Api, task_id: str, node: int) -> None:
    pod = await _running(api, task_id, node, seconds=START_SECONDS)
    await _run(api, pod, f": > {FILES}/{DONE}")


async def _run(api: Api, pod: str, script: str, content: bytes | None = None) -> str:
    running = api.exec(
        pod,
        ["/bin/sh", "-c", script],
        namespace=api.namespace,
        container=CONTAINER,
        stdin=content is not None,
    )
    try:
        async with asyncio.timeout(_SEND_SECONDS), running:
            done = await running.communicate(content)
    except TimeoutError:
        raise DeadlineExceeded(f"pod {pod} did not answer within {_SEND_SECONDS:g} s") from None
    if done.exit_code:
        said = done.stderr.decode(errors="replace").strip()
        raise KvestigateError(f"pod {pod} could not take the files: {said or done.exit_code}")
    return done.stdout.decode(errors="replace")


async def _running(api: Api, task_id: str, node: int, *, seconds: float) -> str:
    """The pod of a node, once it runs."""
    selector = f"{labels.TASK_ID}={task_id},{labels.NODE_INDEX}={node}"
    selection = Selection(api.namespace, labels=selector)
    found = await api.list(PODS, selection, type=Pod)
    for pod in found.items:
        if name := _usable(pod, task_id, node):
            return name
    if not seconds:
        if found.items:
            raise _waiting(task_id, node, found.items[0].status.phase)
        raise NotFound(f"Task {task_id} has no node {node} that runs", hint=_why(task_id))
    version = found.metadata.resource_version
    try:
        async with (
            asyncio.timeout(seconds),
            api.watch(PODS, selection, resource_version=version, type=Pod) as events,
        ):
            async for event in events:
                if event.type != "DELETED" and (name := _usable(event.object, task_id, node)):
                    return name
    except TimeoutError:
        pass
    raise DeadlineExceeded(f"node-{node} did not start within {seconds:g} s", hint=_why(task_id))


def _usable(pod: Pod, task_id: str, node: int) -> str:
    if pod.status.phase in _ENDED:
        raise _waiting(task_id, node, pod.status.phase)
    running = any(each.state.running is not None for each in pod.status.container_statuses)
    return pod.metadata.name if running else ""


def _waiting(task_id: str, node: int, phase: str) -> Conflict:
    return Conflict(f"node-{node} of task {task_id} is {phase}, not running", hint=_why(task_id))


def _why(task_id: str) -> str:
    return f"`k8s-cli jobs why {task_id}` says why"
