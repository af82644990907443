"""Capacity and requests of every node: what the scheduler sees, not live usage. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvestigate.kube.requests import CPU, MEMORY, PODS, Amounts
from kvestigate.kube.views.core import Node
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone
from kvestigate.render.human import cores, size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested
from kvestigate.snapshot.gpus import gpus_only
from kvestigate.snapshot.snapshot import Snapshot

_TIGHT = 0.9
"""From this share on a resource is shown as nearly used up."""


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
    """At which others in the cluster reach it; empty if that is not known."""


@dataclass(frozen=True, slots=True)
class NodesReport:
    nodes: tuple[NodeRow, ...]
    total: NodeRow
    """Of all nodes, ready or not."""


def collect(snapshot: Snapshot) -> NodesReport:
    nodes = snapshot.of(listings.NODES)
    addresses = {node.metadata.name: _address(node) for node in nodes}
    found = capacities(nodes, snapshot.derived(requested))
    rows = tuple(_row(it, addresses[it.name]) for it in sorted(found, key=lambda each: each.name))
    return NodesReport(rows, _total(rows))


def _address(node: Node) -> str:
    found = (it.address for it in node.status.addresses if it.type == "InternalIP")
    return next(found, "")


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


def _gpus(found: Amounts) -> int:
    return sum(gpus_only(found).values())


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
    return Share(sum(it.requested for it in shares), sum(it.allocatable for it in shares))


def render(report: NodesReport) -> Sequence[Block]:
    columns = (
        Column("node"),
        Column("status"),
        Column("cpu", number=True),
        Column("memory", number=True),
        Column("gpu", number=True),
        Column("pods", number=True),
    )
    rows = [_cells(row, _status(row)) for row in report.nodes]
    if rows:
        ready = sum(row.ready for row in report.nodes)
        rows.append(_cells(report.total, f"{ready}/{len(report.nodes)} ready"))
    return [Table(columns, rows, empty="no nodes")]


def _cells(row: NodeRow, status: str | Cell) -> list[str | Cell]:
    return [
        row.name,
        status,
        _shown(row.cpu_millis, *(cores(it / 1000) for it in _both(row.cpu_millis))),
        _shown(row.memory_bytes, *(size(it) for it in _both(row.memory_bytes))),
        _shown(row.gpus, *(str(it) for it in _both(row.gpus))) if row.gpus.allocatable else "-",
        f"{row.pods.requested}/{row.pods.allocatable}",
    ]


def _both(share: Share) -> tuple[int, int]:
    return share.requested, share.allocatable


def _shown(share: Share, requested: str, allocatable: str) -> Cell:
    tone = Tone.WARN if share.ratio >= _TIGHT else Tone.PLAIN
    return Cell(f"{requested} / {allocatable} ({share.ratio:.0%})", tone)


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
