"""Allocatable resources and requests of every node, as the scheduler counts them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kvestigate.kube.requests import CPU, MEMORY, PODS
from kvestigate.kube.views.core import Node
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone, text
from kvestigate.render.human import cores, or_unknown, size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested
from kvestigate.snapshot.ledger.build import COUNTS, ledger
from kvestigate.snapshot.ledger.model import NONE, Count
from kvestigate.snapshot.model import Snapshot

_TIGHT = 0.9
"""A resource requested to this share is shown as nearly used up."""


@dataclass(frozen=True, slots=True)
class Share:
    """None is unknown: the pods or the nodes could not be listed."""

    requested: int | None
    allocatable: int | None

    @property
    def ratio(self) -> float | None:
        """Unknown, too, if there is nothing to request."""
        if self.requested is None or not self.allocatable:
            return None
        return self.requested / self.allocatable


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    ready: bool | None
    """None if unknown."""
    schedulable: bool | None
    cpu_millis: Share
    memory_bytes: Share
    gpus: Share
    """Whole GPUs, of device plugins and of ResourceSlices."""
    pods: Share
    address: str = ""
    """The internal IP; empty if the node reports none."""
    partitions: Share = Share(0, 0)
    """MIG instances and the like."""


@dataclass(frozen=True, slots=True)
class NodesReport:
    nodes: tuple[NodeRow, ...] | None
    """None if they could not be listed."""
    total: NodeRow
    """Of all nodes, ready or not."""


_UNKNOWN = Share(None, None)
_NOTHING_KNOWN = NodeRow(
    "total", None, None, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, partitions=_UNKNOWN
)


def collect(snapshot: Snapshot) -> NodesReport:
    if not snapshot.knows(listings.NODES):
        return NodesReport(None, _total([_NOTHING_KNOWN]))
    nodes, pods_known = snapshot.of(listings.NODES), snapshot.knows(listings.PODS)
    addresses = {node.metadata.name: _address(node) for node in nodes}
    capacity = sorted(capacities(nodes, snapshot.derived(requested)), key=lambda node: node.name)
    book = snapshot.derived(ledger)
    gpus = {row.node: (row.whole, row.partitions) for row in book.nodes or ()}
    others = (NONE, NONE) if book.slices_known else None
    rows = tuple(
        _row(node, addresses[node.name], gpus.get(node.name, others), pods_known)
        for node in capacity
    )
    return NodesReport(rows, _total(rows))


def _address(node: Node) -> str:
    addresses = node.status.addresses
    return next((address.address for address in addresses if address.type == "InternalIP"), "")


def _row(
    node: NodeCapacity, address: str, gpus: tuple[Count, Count] | None, pods_known: bool
) -> NodeRow:
    """`gpus` are the node's whole GPUs and partitions; None if unknown."""

    def of(resource: str) -> Share:
        requested = node.requested.get(resource, 0) if pods_known else None
        return Share(requested, node.allocatable.get(resource, 0))

    whole, partitions = map(_share, gpus) if gpus else (_UNKNOWN, _UNKNOWN)

    return NodeRow(
        name=node.name,
        ready=node.ready,
        schedulable=node.schedulable,
        cpu_millis=of(CPU),
        memory_bytes=of(MEMORY),
        gpus=whole,
        pods=of(PODS),
        address=address,
        partitions=partitions,
    )


def _share(count: Count) -> Share:
    return Share(count.allocated, count.offered)


def _total(rows: Sequence[NodeRow]) -> NodeRow:
    return NodeRow(
        name="total",
        ready=_all([row.ready for row in rows]),
        schedulable=_all([row.schedulable for row in rows]),
        cpu_millis=_sum(row.cpu_millis for row in rows),
        memory_bytes=_sum(row.memory_bytes for row in rows),
        gpus=_sum(row.gpus for row in rows),
        pods=_sum(row.pods for row in rows),
        partitions=_sum(row.partitions for row in rows),
    )


def _all(answers: Sequence[bool | None]) -> bool | None:
    return None if None in answers else all(answers)


def _sum(shares: Iterable[Share]) -> Share:
    shares = tuple(shares)
    return Share(
        _added([share.requested for share in shares]),
        _added([share.allocatable for share in shares]),
    )


def _added(amounts: Sequence[int | None]) -> int | None:
    """The sum of amounts of which one is unknown is unknown."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def render(report: NodesReport) -> Sequence[Block]:
    columns = (
        Column("node"),
        Column("status"),
        Column("cpu", number=True),
        Column("memory", number=True),
        Column("gpu", number=True),
        Column("pods", number=True),
    )
    if report.nodes is None:
        return [text("nodes: unknown (they could not be listed)", Tone.WARN)]
    rows = [_cells(row, _status(row)) for row in report.nodes]
    if rows:
        ready = sum(bool(row.ready) for row in report.nodes)
        rows.append(_cells(report.total, f"{ready}/{len(report.nodes)} ready"))
    return [Table(columns, rows, empty="no nodes")]


def _cells(row: NodeRow, status: str | Cell) -> list[str | Cell]:
    pods = row.pods
    return [
        row.name,
        status,
        _shown(row.cpu_millis, lambda millis: cores(millis / 1000)),
        _shown(row.memory_bytes, size),
        _gpus(row),
        f"{or_unknown(pods.requested)}/{or_unknown(pods.allocatable)}",
    ]


def _gpus(row: NodeRow) -> str | Cell:
    if row.partitions.allocatable:
        parts = f"{or_unknown(row.partitions.requested)} / {row.partitions.allocatable} parts"
        if not row.gpus.allocatable:
            return parts
        return f"{or_unknown(row.gpus.requested)} / {row.gpus.allocatable}, {parts}"
    return "-" if row.gpus.allocatable == 0 else _shown(row.gpus, str)


def _shown(share: Share, unit: Callable[[int], str]) -> Cell:
    amounts = f"{or_unknown(share.requested, unit)} / {or_unknown(share.allocatable, unit)}"
    if share.ratio is None:
        return Cell(amounts)
    tone = Tone.WARN if share.ratio >= _TIGHT else Tone.PLAIN
    return Cell(f"{amounts} ({share.ratio:.0%})", tone)


def _status(row: NodeRow) -> Cell:
    if not row.ready:
        return Cell("NotReady", Tone.BAD)
    return Cell("Ready", Tone.GOOD) if row.schedulable else Cell("Ready, cordoned", Tone.WARN)


REPORT = Report(
    name="nodes",
    summary="Capacity and requests per node, and the cluster's totals.",
    needs=COUNTS,
    collect=collect,
    render=render,
)
