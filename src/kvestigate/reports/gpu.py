"""GPUs of each node, and the containers that request them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.render.blocks import Block, Cell, Field, Table, Tone, table, text
from kvestigate.render.human import size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import requested
from kvestigate.snapshot.gpus import Consumer, Device, NodeGpus, at_work, devices, inventory
from kvestigate.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class GpuReport:
    allocatable: int
    requested: int
    """By pods that are on a node."""
    waiting: int
    """Requested by pods that are not scheduled."""
    nodes: tuple[NodeGpus, ...]
    consumers: tuple[Consumer, ...]
    devices: tuple[Device, ...] = ()
    """The GPUs whose uuid is known."""
    at_work: int | None = None
    """GPUs with a utilization of 1 % or more; None if no utilization is known."""
    pods_known: bool = True
    """False: pods could not be listed, so `requested` and `waiting` are unknown and 0 here."""


def collect(snapshot: Snapshot) -> GpuReport:
    nodes, pods = snapshot.of(listings.NODES), snapshot.of(listings.PODS)
    book = inventory(nodes, pods, snapshot.derived(requested))
    known = devices(nodes, snapshot.of(listings.GPU_READINGS))
    return GpuReport(
        allocatable=sum(sum(node.allocatable.values()) for node in book.nodes),
        requested=sum(sum(node.requested.values()) for node in book.nodes),
        waiting=sum(consumer.amount for consumer in book.consumers if not consumer.node),
        nodes=tuple(sorted(book.nodes, key=lambda node: node.node)),
        consumers=book.consumers,
        devices=known,
        at_work=_at_work(known),
        pods_known=snapshot.knows(listings.PODS),
    )


def _at_work(known: Sequence[Device]) -> int | None:
    utilizations = [device.utilization for device in known if device.utilization is not None]
    return sum(map(at_work, utilizations)) if utilizations else None


def render(report: GpuReport) -> Sequence[Block]:
    if not report.nodes and not report.consumers:
        return [text("no GPUs: no node has allocatable GPUs, and no container requests any")]
    free = report.allocatable - report.requested
    totals = f"{report.requested} of {report.allocatable} GPUs allocated, {free} free"
    if not report.pods_known:
        totals = f"{report.allocatable} GPUs; allocated: unknown (pods could not be listed)"
    if report.waiting:
        totals += f", {report.waiting} requested by pending pods"
    if report.at_work is not None:
        totals += f"; {report.at_work} busy"
    blocks: list[Block] = [text(totals)] if report.nodes else []
    blocks.append(_nodes(report))
    if report.pods_known:
        blocks.append(_consumers(report.consumers))
    if report.devices:
        blocks.append(_devices(report.devices))
    return blocks


def _nodes(report: GpuReport) -> Table:
    return table(
        report.nodes,
        Field("node", lambda row: row.node),
        Field("model", lambda row: row.model or row.vendor),
        Field("count", lambda row: str(row.count), number=True),
        Field("memory", _memory, number=True),
        Field("driver", lambda row: row.driver or "-"),
        Field("cuda", lambda row: row.cuda or "-"),
        Field("mig", _mig),
        Field("sharing", lambda row: f"{row.sharing} x{row.replicas}" if row.sharing else "-"),
        Field("allocated", lambda row: _allocated(row, report), number=True),
        empty="no node has allocatable GPUs",
    )


def _memory(node: NodeGpus) -> str:
    return size(node.memory_mib * 1024 * 1024) if node.memory_mib else "-"


def _allocated(node: NodeGpus, report: GpuReport) -> str | Cell:
    offered, used = sum(node.allocatable.values()), sum(node.requested.values())
    if not report.pods_known:
        return f"unknown/{offered}"
    return Cell(f"{used}/{offered}", Tone.WARN if used >= offered else Tone.PLAIN)


def _mig(node: NodeGpus) -> str:
    if node.mig_profiles:
        return ", ".join(f"{count}x {name}" for name, count in sorted(node.mig_profiles.items()))
    return {"": "-", "none": "off"}.get(node.mig_strategy, node.mig_strategy)


def _consumers(consumers: Sequence[Consumer]) -> Table:
    return table(
        consumers,
        Field("node", lambda row: row.node or Cell("(pending)", Tone.WARN)),
        Field("namespace", lambda row: row.namespace),
        Field("pod", lambda row: row.pod),
        Field("container", lambda row: row.container),
        Field("resource", lambda row: row.resource),
        Field("amount", lambda row: str(row.amount), number=True),
        Field("phase", lambda row: row.phase),
        empty="no container requests GPUs",
    )


def _devices(devices: Sequence[Device]) -> Table:
    return table(
        devices,
        Field("node", lambda row: row.node),
        Field("gpu", lambda row: row.index, number=True),
        Field("uuid", lambda row: row.uuid),
        Field(
            "utilization",
            lambda row: "-" if row.utilization is None else f"{row.utilization:.0f}%",
            number=True,
        ),
        Field(
            "memory",
            lambda row: (
                "-" if row.memory_used_mib is None else size(int(row.memory_used_mib) * 1024 * 1024)
            ),
            number=True,
        ),
        Field("used by", lambda row: "-" if row.user is None else row.user or "(not allocated)"),
    )


REPORT = Report(
    name="gpu",
    summary="GPU model, memory, driver, MIG and allocation per node, and the pods that hold GPUs.",
    needs=(listings.NODES, listings.PODS, listings.GPU_READINGS),
    collect=collect,
    render=render,
)
