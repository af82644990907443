"""The GPU nodes of a cluster as the scheduler counts them. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kvestigate.kube.requests import Amounts
from kvestigate.reports.gpu import GpuReport
from kvestigate.reports.nodes import NodesReport
from kvestigate.snapshot.ledger.model import NodeGpus

CLAIMED = "claimed GPU"
CLAIMED_PART = "claimed partition"
"""What devices of ResourceSlices are called beside resource names."""


class Fill(enum.Enum):
    """How much of a node's GPUs is allocated."""

    EMPTY = "empty"
    PARTIAL = "partial"
    FULL = "full"


NOT_READY = "not ready"


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod that holds GPUs."""

    namespace: str
    name: str
    gpus: Amounts
    """By resource name, `CLAIMED` or `CLAIMED_PART`."""

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
    physical: int | None = None
    """Physical GPUs; None if unknown."""

    @property
    def capacity(self) -> int:
        """What can be allocated: whole GPUs, partitions, shares."""
        return sum(self.offered.values())

    @property
    def stated(self) -> int:
        """What pods hold of `capacity`, whether they use it or not."""
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
    held: dict[str, dict[tuple[str, str], Amounts]] = {}
    for consumer in gpus.consumers or ():
        pod = (consumer.namespace, consumer.pod)
        _add(held, consumer.node, pod, consumer.resource, consumer.amount)
    for device in gpus.devices or ():
        for user in (device.user or "").split(", ") if device.claims else ():
            namespace, slash, name = user.partition("/")
            if slash and " " not in namespace:
                resource = CLAIMED_PART if device.parent else CLAIMED
                _add(held, device.node, (namespace, name), resource, 1)
    return Fleet(
        captured_at=captured_at,
        server=server,
        nodes=tuple(
            GpuNode(
                name=node.node,
                model=node.model,
                offered={**node.allocatable, **_claimable(node, "offered")},
                allocated={**(node.requested or {}), **_claimable(node, "allocated")},
                pods=_pods(held.get(node.node, {})),
                closed=closed.get(node.node, ""),
                physical=node.count,
            )
            for node in sorted(gpus.nodes or (), key=lambda node: node.node)
            if node.node
        ),
        waiting=(gpus.waiting or 0) + (gpus.waiting_partitions or 0),
    )


def _add(
    held: dict[str, dict[tuple[str, str], Amounts]],
    node: str,
    pod: tuple[str, str],
    resource: str,
    amount: int,
) -> None:
    amounts = held.setdefault(node, {}).setdefault(pod, {})
    amounts[resource] = amounts.get(resource, 0) + amount


def _claimable(node: NodeGpus, figure: str) -> Amounts:
    """What ResourceSlices offer on a node, or what claims hold of it."""
    counts = {CLAIMED: node.claimable, CLAIMED_PART: node.claimable_partitions}
    return {
        name: getattr(count, figure) or 0
        for name, count in counts.items()
        if count.offered or count.allocated
    }


def _closed(ready: bool | None, schedulable: bool | None) -> str:
    if not ready:
        return NOT_READY
    return "" if schedulable else "cordoned"


def _pods(held: Mapping[tuple[str, str], Amounts]) -> tuple[GpuPod, ...]:
    return tuple(sorted((GpuPod(*pod, gpus) for pod, gpus in held.items()), key=largest_first))


def largest_first(pod: GpuPod) -> tuple[int, str, str]:
    return -pod.count, pod.namespace, pod.name
