"""Allocatable resources and requests of every node, as the scheduler counts them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kvestigate.kube.requests import CPU, MEMORY, PODS, Amounts
from kvestigate.kube.views.core import Node
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone
from kvestigate.render.human import cores, size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested
from kvestigate.snapshot.gpus import gpus_only
from kvestigate.snapshot.model import Snapshot

_TIGHT = 0.9
"""A resource requested to this share is shown as nearly used up."""


@dataclass(frozen=True, slots=True)
class Share:
    requested: int
    allocatable: int

    @property
    def ratio(self) -> float:
        return self.requested / self.allocatable if self.allocatable else 0.0


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    ready: bool
    schedulable: bool
    cpu_millis: Share
    memory_bytes: Share
    gpus: Share
    pods: Share
    address: str = ""
    """The internal IP; empty if the node reports none."""


@dataclass(frozen=True, slots=True)
class NodesReport:
    nodes: tuple[NodeRow, ...]
    total: NodeRow
    """Of all nodes, ready or not."""
    pods_known: bool = True
    """False: pods could not be listed, so what they request is unknown and shown as 0 here."""


def collect(snapshot: Snapshot) -> NodesReport:
    nodes = snapshot.of(listings.NODES)
    addresses = {node.metadata.name: _address(node) for node in nodes}
    capacity = sorted(capacities(nodes, snapshot.derived(requested)), key=lambda node: node.name)
    rows = tuple(_row(node, addresses[node.name]) for node in capacity)
    return NodesReport(rows, _total(rows), snapshot.knows(listings.PODS))


def _address(node: Node) -> str:
    addresses = node.status.addresses
    return next((address.address for address in addresses if address.type == "InternalIP"), "")


def _row(node: NodeCapacity, address: str) -> NodeRow:
    return NodeRow(
        name=node.name,
        ready=node.ready,
        schedulable=node.schedulable,
        cpu_millis=_share(node, CPU),
        memory_bytes=_share(node, MEMORY),
        gpus=Share(_gpus(node.requested), _gpus(node.allocatable)),
        pods=_share(node, PODS),
        address=address,
    )


def _share(node: NodeCapacity, resource: str) -> Share:
    return Share(node.requested.get(resource, 0), node.allocatable.get(resource, 0))


def _gpus(amounts: Amounts) -> int:
    return sum(gpus_only(amounts).values())


def _total(rows: Sequence[NodeRow]) -> NodeRow:
    return NodeRow(
        name="total",
        ready=all(row.ready for row in rows),
        schedulable=all(row.schedulable for row in rows),
        cpu_millis=_sum(row.cpu_millis for row in rows),
        memory_bytes=_sum(row.memory_bytes for row in rows),
        gpus=_sum(row.gpus for row in rows),
        pods=_sum(row.pods for row in rows),
    )


def _sum(shares: Iterable[Share]) -> Share:
    shares = tuple(shares)
    return Share(
        sum(share.requested for share in shares), sum(share.allocatable for share in shares)
    )


def render(report: NodesReport) -> Sequence[Block]:
    columns = (
        Column("node"),
        Column("status"),
        Column("cpu", number=True),
        Column("memory", number=True),
        Column("gpu", number=True),
        Column("pods", number=True),
    )
    known = report.pods_known
    rows = [_cells(row, _status(row), known) for row in report.nodes]
    if rows:
        ready = sum(row.ready for row in report.nodes)
        rows.append(_cells(report.total, f"{ready}/{len(report.nodes)} ready", known))
    return [Table(columns, rows, empty="no nodes")]


def _cells(row: NodeRow, status: str | Cell, known: bool) -> list[str | Cell]:
    pods = row.pods
    return [
        row.name,
        status,
        _shown(row.cpu_millis, lambda millis: cores(millis / 1000), known),
        _shown(row.memory_bytes, size, known),
        _shown(row.gpus, str, known) if row.gpus.allocatable else "-",
        f"{pods.requested if known else 'unknown'}/{pods.allocatable}",
    ]


def _shown(share: Share, unit: Callable[[int], str], known: bool) -> Cell:
    if not known:
        return Cell(f"unknown / {unit(share.allocatable)}")
    tone = Tone.WARN if share.ratio >= _TIGHT else Tone.PLAIN
    return Cell(f"{unit(share.requested)} / {unit(share.allocatable)} ({share.ratio:.0%})", tone)


def _status(row: NodeRow) -> Cell:
    if not row.ready:
        return Cell("NotReady", Tone.BAD)
    return Cell("Ready", Tone.GOOD) if row.schedulable else Cell("Ready, cordoned", Tone.WARN)


REPORT = Report(
    name="nodes",
    summary="Capacity and requests per node, and the cluster's totals.",
    needs=(listings.NODES, listings.PODS),
    collect=collect,
    render=render,
)
