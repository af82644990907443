"""The GPU nodes of a cluster as the scheduler counts them. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from kvestigate.kube.requests import Amounts
from kvestigate.reports.gpu import GpuReport
from kvestigate.reports.nodes import NodesReport
from kvestigate.snapshot.gpus import Consumer


class Fill(enum.Enum):
    """How much of a node's GPUs is allocated."""

    EMPTY = "empty"
    PARTIAL = "partial"
    FULL = "full"


NOT_READY = "not ready"


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod that requests GPUs."""

    namespace: str
    name: str
    gpus: Amounts
    """By resource name."""

    @property
    def count(self) -> int:
        return sum(self.gpus.values())

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class GpuNode:
    name: str
    model: str
    """Empty if no label says it."""
    offered: Amounts
    allocated: Amounts
    pods: tuple[GpuPod, ...] = ()
    """The largest first."""
    closed: str = ""
    """Why no new pods are scheduled here: `cordoned`, `not ready`; empty if they are."""

    @property
    def capacity(self) -> int:
        return sum(self.offered.values())

    @property
    def stated(self) -> int:
        """GPUs that pods request, whether they use them or not."""
        return sum(self.allocated.values())

    @property
    def room(self) -> Amounts:
        """What is free of each resource; never negative, even if the node lost devices."""
        return {
            name: max(count - self.allocated.get(name, 0), 0)
            for name, count in self.offered.items()
        }

    @property
    def free(self) -> int:
        return sum(self.room.values())

    @property
    def share(self) -> float:
        return self.stated / self.capacity if self.capacity else 1.0

    @property
    def fill(self) -> Fill:
        if not self.stated:
            return Fill.EMPTY
        return Fill.PARTIAL if self.free else Fill.FULL


@dataclass(frozen=True, slots=True)
class Fleet:
    captured_at: datetime
    """UTC."""
    server: str
    nodes: tuple[GpuNode, ...]
    """By name."""
    waiting: int = 0
    """GPUs requested by pending pods."""


def fleet_of(gpus: GpuReport, nodes: NodesReport, *, captured_at: datetime, server: str) -> Fleet:
    """The fleet, from the two reports of one snapshot that has both nodes and pods."""
    closed = {row.name: _closed(row.ready, row.schedulable) for row in nodes.nodes or ()}
    held: dict[str, list[Consumer]] = {}
    for consumer in gpus.consumers or ():
        held.setdefault(consumer.node, []).append(consumer)
    return Fleet(
        captured_at=captured_at,
        server=server,
        nodes=tuple(
            GpuNode(
                name=node.node,
                model=node.model,
                offered=node.allocatable,
                allocated=node.requested or {},
                pods=_pods(held.get(node.node, ())),
                closed=closed.get(node.node, ""),
            )
            for node in sorted(gpus.nodes or (), key=lambda node: node.node)
        ),
        waiting=gpus.waiting or 0,
    )


def _closed(ready: bool | None, schedulable: bool | None) -> str:
    if not ready:
        return NOT_READY
    return "" if schedulable else "cordoned"


def _pods(consumers: Iterable[Consumer]) -> tuple[GpuPod, ...]:
    by_pod: dict[tuple[str, str], Amounts] = {}
    for consumer in consumers:
        gpus = by_pod.setdefault((consumer.namespace, consumer.pod), {})
        gpus[consumer.resource] = gpus.get(consumer.resource, 0) + consumer.amount
    return tuple(sorted((GpuPod(*name, gpus) for name, gpus in by_pod.items()), key=largest_first))


def largest_first(pod: GpuPod) -> tuple[int, str, str]:
    return -pod.count, pod.namespace, pod.name
