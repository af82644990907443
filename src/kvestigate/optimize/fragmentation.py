"""How the free GPUs of a fleet are spread over its nodes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kvestigate.optimize.model import Fill, Fleet, GpuNode

SCHEMA = "kvestigate.optimize.analysis/v1"


@dataclass(frozen=True, slots=True)
class NodeFill:
    name: str
    model: str
    capacity: int
    allocated: int
    free: int
    share: float
    """Allocated of allocatable GPUs, from 0 to 1."""
    fill: Fill
    pods: int
    """Pods with GPUs."""
    closed: str
    """`cordoned`, `not ready`; empty if new pods can be scheduled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation:
    schema: str = SCHEMA
    captured_at: datetime
    """UTC."""
    server: str
    physical: int | None
    """Physical GPUs; None if those of a node are unknown."""
    capacity: int
    """What can be allocated: whole GPUs, partitions, shares."""
    allocated: int
    free: int
    waiting: int
    """GPUs requested by pending pods."""
    full: int
    """Nodes."""
    partial: int
    empty: int
    stranded: int
    """Free GPUs on nodes that are neither full nor empty."""
    largest_block: int
    """The most free GPUs on a single node."""
    opportunity: bool
    """More GPUs are free than on any single node, and more than one node is partial."""
    nodes: tuple[NodeFill, ...]


def analyze(fleet: Fleet) -> Fragmentation:
    nodes = fleet.nodes
    partial = [node for node in nodes if node.fill is Fill.PARTIAL]
    free = sum(node.free for node in nodes)
    largest = max((node.free for node in nodes), default=0)
    return Fragmentation(
        captured_at=fleet.captured_at,
        server=fleet.server,
        physical=_physical(nodes),
        capacity=sum(node.capacity for node in nodes),
        allocated=sum(node.stated for node in nodes),
        free=free,
        waiting=fleet.waiting,
        full=sum(node.fill is Fill.FULL for node in nodes),
        partial=len(partial),
        empty=sum(node.fill is Fill.EMPTY for node in nodes),
        stranded=sum(node.free for node in partial),
        largest_block=largest,
        opportunity=free > largest and len(partial) > 1,
        nodes=tuple(map(_fill, nodes)),
    )


def _physical(nodes: Sequence[GpuNode]) -> int | None:
    counts = [node.physical for node in nodes]
    return None if None in counts else sum(count or 0 for count in counts)


def _fill(node: GpuNode) -> NodeFill:
    return NodeFill(
        name=node.name,
        model=node.model,
        capacity=node.capacity,
        allocated=node.stated,
        free=node.free,
        share=node.share,
        fill=node.fill,
        pods=len(node.pods),
        closed=node.closed,
    )
