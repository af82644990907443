"""Reaching a task that runs: the addresses of its ports, and processes in its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Conflict, NotFound
from kvestigate.jobs.answers import Endpoint, EndpointResponse
from kvestigate.jobs.interface import ExecRequest
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.compile import ports_name
from kvestigate.jobs.tasks.statuses import TaskJob, node_index, pod_selector, task_container
from kvestigate.kube import builtins
from kvestigate.kube.views.network import Service
from kvestigate.kube.views.pods import Pod

if TYPE_CHECKING:
    from kvestigate.client.streams import Session

SERVICES = builtins.resource("services")


async def endpoints(api: Api, task_id: str) -> EndpointResponse:
    name = ports_name(task_id)
    try:
        service = await api.get(SERVICES, name, namespace=api.namespace, type=Service)
    except NotFound:
        raise NotFound(
            f"Task {task_id} has no ports", hint="list them in the task: `resources: {ports: 8080}`"
        ) from None
    spec = service.spec
    outside = [
        *spec.external_ips,
        *(item.ip or item.hostname for item in service.status.load_balancer.ingress),
    ]
    return EndpointResponse(
        task_id,
        tuple(
            Endpoint(
                port=item.port,
                address=_joined(spec.cluster_ip, item.port),
                name=f"{name}.{service.metadata.namespace}.svc:{item.port}",
                external=_joined(outside[0] if outside else "", item.port),
            )
            for item in spec.ports
        ),
    )


def _joined(host: str, port: int) -> str:
    if not host or host == "None":
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def session(api: Api, jobs: Sequence[TaskJob], request: ExecRequest) -> Session:
    """A command in a node that runs, or with none the task's own process."""
    pod = await _running(api, jobs, request.node)
    name, where = pod.metadata.name, {"namespace": api.namespace, "container": task_container(pod)}
    if not request.command:
        return api.attach(name, stdin=request.stdin, tty=request.tty, **where)
    return api.exec(name, request.command, stdin=request.stdin, tty=request.tty, **where)


async def _running(api: Api, jobs: Sequence[TaskJob], node: int) -> Pod:
    """The pod of a node that runs."""
    selection = Selection(api.namespace, labels=pod_selector(jobs))
    listed = await api.list(PODS, selection, type=Pod)
    pods = [pod for pod in listed.items if node_index(pod) == node]
    for pod in pods:
        if any(status.state.running is not None for status in pod.status.container_statuses):
            return pod
    task_id = jobs[0].metadata.labels[labels.TASK_ID]
    why = f"`k8s-cli jobs why {task_id}` shows the reason"
    if pods:
        phase = pods[0].status.phase
        raise Conflict(f"node-{node} of task {task_id} is {phase}, not running", hint=why)
    raise NotFound(f"Task {task_id} has no running node {node}", hint=why)
