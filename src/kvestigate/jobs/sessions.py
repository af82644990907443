"""Commands inside a task's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Conflict, NotFound
from kvestigate.jobs.interface import ExecRequest
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.compile import CONTAINER
from kvestigate.kube.views.pods import Pod

if TYPE_CHECKING:
    from kvestigate.client.streams import Session


async def session(api: Api, task_id: str, request: ExecRequest) -> Session:
    """A command in a node that runs, or with none the task's own process."""
    pod = await _running(api, task_id, request.node)
    where = {"namespace": api.namespace, "container": CONTAINER}
    if not request.command:
        return api.attach(pod, stdin=request.stdin, tty=request.tty, **where)
    return api.exec(pod, request.command, stdin=request.stdin, tty=request.tty, **where)


async def _running(api: Api, task_id: str, node: int) -> str:
    """The pod of a node that runs."""
    selector = f"{labels.TASK_ID}={task_id},{labels.NODE_INDEX}={node}"
    found = await api.list(PODS, Selection(api.namespace, labels=selector), type=Pod)
    for pod in found.items:
        if any(each.state.running is not None for each in pod.status.container_statuses):
            return pod.metadata.name
    why = f"`k8s-cli jobs why {task_id}` says why"
    if found.items:
        phase = found.items[0].status.phase
        raise Conflict(f"node-{node} of task {task_id} is {phase}, not running", hint=why)
    raise NotFound(f"Task {task_id} has no node {node} that runs", hint=why)
