"""A job that asks every node for its GPUs: what `kvestigate demo` runs, and what it saw."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.logs import LogOptions
from kvestigate.errors import DeadlineExceeded, NotFound
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.workloads import Job

NAME = "demo"
SCENARIO = "gpu-fleet"
_NAMESPACE = "default"
_FLEET = ("prd-r6000-nest", "research")
"""Where the scenario's servers and sweeps are."""
_FLEET_PODS = 48
"""All that have room; what waits for GPUs is a job of its own."""
_SECONDS = 60.0

_SCRIPT = """\
nvidia-smi --query-gpu=utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu \\
  --format=csv,noheader,nounits |
awk -F, '
  { busy += $1; used += $2; total += $3; watts += $4; if ($5 > hottest) hottest = $5 }
  END { printf "%d GPUs  %4.1f%% busy  %5.1f/%.1f GiB  %.2f kW  %d C\\n",
          NR, busy / NR, used / 1024, total / 1024, watts / 1000, hottest }'
"""


@dataclass(frozen=True, slots=True)
class NodeSeen:
    name: str
    ready: bool
    runtime: str
    """`kvestigate-namespace://1`"""


@dataclass(frozen=True, slots=True)
class Line:
    pod: str
    node: str
    text: str


@dataclass(frozen=True, slots=True)
class Demonstration:
    nodes: tuple[NodeSeen, ...]
    pods: int
    """Of the fleet, running."""
    lines: tuple[Line, ...]
    first_line_seconds: float
    """From submitting the job to the first line of its log."""
    seconds: float
    """From submitting the job to its end."""


async def demonstrate(api: Api) -> Demonstration:
    """Wait for the fleet, run a task on each of its nodes, and read what they said."""
    try:
        async with asyncio.timeout(_SECONDS):
            nodes = await api.list(builtins.resource("nodes"), type=Node)
            pods = await _fleet(api)
            await _clear(api)
            began = time.monotonic()
            job = _job(len(nodes.items))
            await api.create(builtins.resource("jobs.batch"), job, namespace=_NAMESPACE)
            first = asyncio.create_task(_first_line(api))
            try:
                await _finished(api, len(nodes.items))
                seconds = time.monotonic() - began
                first_seconds = await first - began
            finally:
                first.cancel()
            lines = await _lines(api)
    except TimeoutError:
        raise DeadlineExceeded(
            f"the demo job did not finish within {_SECONDS:g} s",
            hint=f"find the cause: kvestigate --context kvestigate-{NAME} audit",
        ) from None
    seen = tuple(_seen(node) for node in nodes.items)
    return Demonstration(seen, pods, tuple(lines), first_seconds, seconds)


async def _fleet(api: Api) -> int:
    """How many pods run, once all that can do."""
    running: dict[str, bool] = {}
    async with api.watch(builtins.resource("pods"), Selection(), type=Pod) as events:
        async for event in events:
            pod = event.object
            meta = pod.metadata
            if meta.namespace in _FLEET:
                running[meta.uid] = event.type != "DELETED" and pod.status.phase == "Running"
            if sum(running.values()) >= _FLEET_PODS:
                break
    return sum(running.values())


async def _clear(api: Api) -> None:
    """Remove the job of an earlier demonstration, its pods included."""
    pods, jobs = builtins.resource("pods"), builtins.resource("jobs.batch")
    try:
        await api.delete(jobs, NAME, namespace=_NAMESPACE, type=bytes)
    except NotFound:
        return
    await api.delete_collection(pods, Selection(_NAMESPACE, labels=f"job-name={NAME}"))


async def _finished(api: Api, tasks: int) -> None:
    selection = Selection(_NAMESPACE, fields=f"metadata.name={NAME}")
    async with api.watch(builtins.resource("jobs.batch"), selection, type=Job) as events:
        async for event in events:
            if event.object.status.succeeded >= tasks:
                return


async def _first_line(api: Api) -> float:
    """When the first line was there to be read."""
    selection = Selection(_NAMESPACE, labels=f"job-name={NAME}")
    async with api.watch(builtins.resource("pods"), selection, type=Pod) as events:
        async for event in events:
            pod = event.object
            if pod.status.phase in ("Running", "Succeeded"):
                options = LogOptions(follow=True)
                async for _ in api.logs(pod.metadata.name, options, namespace=_NAMESPACE):
                    return time.monotonic()
    raise AssertionError("the watch ended without a pod")


async def _lines(api: Api) -> list[Line]:
    selection = Selection(_NAMESPACE, labels=f"job-name={NAME}")
    pods = await api.list(builtins.resource("pods"), selection, type=Pod)
    lines = []
    for pod in sorted(pods.items, key=lambda pod: pod.spec.node_name):
        name, node = pod.metadata.name, pod.spec.node_name
        async for line in api.logs(name, LogOptions(), namespace=_NAMESPACE):
            lines.append(Line(name, node, line.decode(errors="replace").rstrip("\n")))
    return lines


def _seen(node: Node) -> NodeSeen:
    ready = any(
        condition.type == "Ready" and condition.status == "True"
        for condition in node.status.conditions
    )
    return NodeSeen(node.metadata.name, ready, node.status.node_info.container_runtime_version)


def _job(nodes: int) -> dict[str, Any]:
    """One task on each node; without a GPU of its own, each sees all that the node has."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job-name": NAME}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": NAME},
        "spec": {
            "completions": nodes,
            "parallelism": nodes,
            "completionMode": "Indexed",
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "topologySpreadConstraints": [spread],
                    "containers": [
                        {"name": "task", "image": "host", "command": ["sh", "-c", _SCRIPT]}
                    ],
                }
            },
        },
    }
