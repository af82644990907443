"""Live CPU and memory, as metrics-server measures them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.kube.requests import CPU, MEMORY, amounts
from kvestigate.kube.views.metrics import PodMetrics
from kvestigate.render.blocks import Block, Field, Table, Tone, table, text
from kvestigate.render.human import cores, size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot

TOP = 15
"""How many of the busiest pods are shown."""


@dataclass(frozen=True, slots=True)
class NodeUsage:
    name: str
    cpu_millis: int
    cpu_allocatable: int
    memory_bytes: int
    memory_allocatable: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    namespace: str
    name: str
    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class MetricsReport:
    available: bool
    """False without metrics-server, or if it may not be read."""
    nodes: tuple[NodeUsage, ...]
    by_cpu: tuple[PodUsage, ...]
    by_memory: tuple[PodUsage, ...]


def collect(snapshot: Snapshot) -> MetricsReport:
    pods = [_pod_usage(pod) for pod in snapshot.of(listings.POD_METRICS)]
    return MetricsReport(
        available=snapshot.knows(listings.NODE_METRICS) or snapshot.knows(listings.POD_METRICS),
        nodes=_node_usage(snapshot),
        by_cpu=tuple(sorted(pods, key=lambda pod: -pod.cpu_millis)[:TOP]),
        by_memory=tuple(sorted(pods, key=lambda pod: -pod.memory_bytes)[:TOP]),
    )


def _node_usage(snapshot: Snapshot) -> tuple[NodeUsage, ...]:
    offered = {
        node.metadata.name: amounts(node.status.allocatable) for node in snapshot.of(listings.NODES)
    }
    usages = []
    for node in snapshot.of(listings.NODE_METRICS):
        used, offers = amounts(node.usage), offered.get(node.metadata.name, {})
        usages.append(
            NodeUsage(
                node.metadata.name,
                used.get(CPU, 0),
                offers.get(CPU, 0),
                used.get(MEMORY, 0),
                offers.get(MEMORY, 0),
            )
        )
    return tuple(sorted(usages, key=lambda usage: usage.name))


def _pod_usage(pod: PodMetrics) -> PodUsage:
    used = [amounts(container.usage) for container in pod.containers]
    return PodUsage(
        pod.metadata.namespace,
        pod.metadata.name,
        sum(amount.get(CPU, 0) for amount in used),
        sum(amount.get(MEMORY, 0) for amount in used),
    )


def render(report: MetricsReport) -> Sequence[Block]:
    if not report.available:
        reason = "metrics-server is not installed, does not answer, or may not be read"
        return [text(f"live usage: unknown ({reason})", Tone.WARN)]
    return [
        table(
            report.nodes,
            Field("node", lambda row: row.name),
            Field(
                "cpu",
                lambda row: _of(cores(row.cpu_millis / 1000), row.cpu_millis, row.cpu_allocatable),
                number=True,
            ),
            Field(
                "memory",
                lambda row: _of(size(row.memory_bytes), row.memory_bytes, row.memory_allocatable),
                number=True,
            ),
            empty="usage of nodes: unknown",
        ),
        text(f"Top {TOP} pods by CPU", Tone.STRONG),
        _top(report.by_cpu),
        text(f"Top {TOP} pods by memory", Tone.STRONG),
        _top(report.by_memory),
    ]


def _of(used: str, amount: int, whole: int) -> str:
    return f"{used} ({amount / whole:.0%})" if whole else used


def _top(pods: Sequence[PodUsage]) -> Table:
    return table(
        pods,
        Field("namespace", lambda row: row.namespace),
        Field("pod", lambda row: row.name),
        Field("cpu", lambda row: cores(row.cpu_millis / 1000), number=True),
        Field("memory", lambda row: size(row.memory_bytes), number=True),
        empty="usage of pods: unknown",
    )


REPORT = Report(
    name="metrics",
    summary="Live CPU and memory, and the busiest pods; needs metrics-server.",
    needs=(listings.NODES, listings.NODE_METRICS, listings.POD_METRICS),
    collect=collect,
    render=render,
)
