"""From nothing to a job that ran: what `kvestigate demo` does, and what it saw."""

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
_NAMESPACE = "default"
_SECONDS = 15.0

_SCRIPT = """\
echo "task $JOB_COMPLETION_INDEX on $(hostname), user $(id -un), $(nproc) CPUs"
echo "primes below 100000: $(seq 2 100000 | factor | awk 'NF == 2' | wc -l)"
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
    lines: tuple[Line, ...]
    first_line_seconds: float
    """From submitting the job to the first line of its log."""
    seconds: float
    """From submitting the job to its end."""


async def demonstrate(api: Api) -> Demonstration:
    """Run a job of two tasks on the cluster and read what it said."""
    try:
        async with asyncio.timeout(_SECONDS):
            nodes = await api.list(builtins.resource("nodes"), type=Node)
            await _clear(api)
            began = time.monotonic()
            await api.create(builtins.resource("jobs.batch"), _job(), namespace=_NAMESPACE)
            first = asyncio.create_task(_first_line(api))
            try:
                await _finished(api)
                seconds = time.monotonic() - began
                first_seconds = await first - began
            finally:
                first.cancel()
            lines = await _lines(api)
    except TimeoutError:
        raise DeadlineExceeded(
            f"the job did not end within {_SECONDS:g} s",
            hint=f"kubectl --context kvestigate-{NAME} describe job {NAME}",
        ) from None
    return Demonstration(
        tuple(_seen(node) for node in nodes.items), tuple(lines), first_seconds, seconds
    )


async def _clear(api: Api) -> None:
    """Remove the job of an earlier demonstration, its pods included."""
    pods, jobs = builtins.resource("pods"), builtins.resource("jobs.batch")
    try:
        await api.delete(jobs, NAME, namespace=_NAMESPACE, type=bytes)
    except NotFound:
        return
    await api.delete_collection(pods, Selection(_NAMESPACE, labels=f"job-name={NAME}"))


async def _finished(api: Api) -> None:
    selection = Selection(_NAMESPACE, fields=f"metadata.name={NAME}")
    async with api.watch(builtins.resource("jobs.batch"), selection, type=Job) as events:
        async for event in events:
            if event.object.status.succeeded >= 2:
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
    found = await api.list(builtins.resource("pods"), selection, type=Pod)
    lines = []
    for pod in sorted(found.items, key=lambda pod: pod.metadata.name):
        name, node = pod.metadata.name, pod.spec.node_name
        async for line in api.logs(name, LogOptions(), namespace=_NAMESPACE):
            lines.append(Line(name, node, line.decode(errors="replace").rstrip("\n")))
    return lines


def _seen(node: Node) -> NodeSeen:
    ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    return NodeSeen(node.metadata.name, ready, node.status.node_info.container_runtime_version)


def _job() -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": NAME},
        "spec": {
            "completions": 2,
            "parallelism": 2,
            "completionMode": "Indexed",
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {"name": "task", "image": "host", "command": ["sh", "-c", _SCRIPT]}
                    ],
                }
            },
        },
    }
