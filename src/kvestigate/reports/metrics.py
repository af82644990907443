"""Live CPU and memory, as metrics-server measures them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    cpu_allocatable: int | None
    """None if nodes could not be listed."""
    memory_bytes: int
    memory_allocatable: int | None


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
    nodes: tuple[NodeUsage, ...] | None
    """None if unknown, as the others."""
    by_cpu: tuple[PodUsage, ...] | None
    by_memory: tuple[PodUsage, ...] | None


def collect(snapshot: Snapshot) -> MetricsReport:
    measured = snapshot.known(listings.POD_METRICS)
    pods = None if measured is None else [_pod_usage(pod) for pod in measured]
    return MetricsReport(
        available=snapshot.knows(listings.NODE_METRICS) or snapshot.knows(listings.POD_METRICS),
        nodes=_node_usage(snapshot),
        by_cpu=_busiest(pods, lambda pod: pod.cpu_millis),
        by_memory=_busiest(pods, lambda pod: pod.memory_bytes),
    )


def _busiest(
    pods: Sequence[PodUsage] | None, used: Callable[[PodUsage], int]
) -> tuple[PodUsage, ...] | None:
    return None if pods is None else tuple(sorted(pods, key=lambda pod: -used(pod))[:TOP])


def _node_usage(snapshot: Snapshot) -> tuple[NodeUsage, ...] | None:
    measured = snapshot.known(listings.NODE_METRICS)
    if measured is None:
        return None
    offered = {
        node.metadata.name: amounts(node.status.allocatable) for node in snapshot.of(listings.NODES)
    }
    usages = []
    for node in measured:
        used, offers = amounts(node.usage), offered.get(node.metadata.name, {})
        usages.append(
            NodeUsage(
                node.metadata.name,
                used.get(CPU, 0),
                offers.get(CPU),
                used.get(MEMORY, 0),
                offers.get(MEMORY),
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
            report.nodes or (),
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
        _top(report.by_cpu or ()),
        text(f"Top {TOP} pods by memory", Tone.STRONG),
        _top(report.by_memory or ()),
    ]


def _of(used: str, amount: int, whole: int | None) -> str:
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
