"""GPUs of each node, and the containers that request them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.render.blocks import Block, Cell, Field, Table, Tone, table, text
from kvestigate.render.human import counted, size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import requested
from kvestigate.snapshot.gpus import (
    Consumer,
    Device,
    NodeGpus,
    at_work,
    consumers,
    devices,
    nodes_with_gpus,
)
from kvestigate.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class GpuReport:
    """None is unknown: the nodes or the pods could not be listed."""

    allocatable: int | None
    requested: int | None
    """By pods that are on a node."""
    waiting: int | None
    """Requested by pods that are not scheduled."""
    nodes: tuple[NodeGpus, ...] | None
    consumers: tuple[Consumer, ...] | None
    devices: tuple[Device, ...] = ()
    """The GPUs whose uuid is known."""
    at_work: int | None = None
    """GPUs with a utilization of 1 % or more; None if no utilization is known."""
    not_counted: dict[str, int] | None = None
    """Driver -> devices of ResourceSlices, which none of the other figures count."""


def collect(snapshot: Snapshot) -> GpuReport:
    nodes_known, pods_known = snapshot.knows(listings.NODES), snapshot.knows(listings.PODS)
    nodes = snapshot.of(listings.NODES)
    offered = nodes_with_gpus(nodes, snapshot.derived(requested) if pods_known else None)
    users = consumers(snapshot.of(listings.PODS))
    known = devices(nodes, snapshot.of(listings.GPU_READINGS))
    taken = sum(sum((node.requested or {}).values()) for node in offered)
    return GpuReport(
        allocatable=sum(sum(node.allocatable.values()) for node in offered)
        if nodes_known
        else None,
        requested=taken if nodes_known and pods_known else None,
        waiting=sum(user.amount for user in users if not user.node) if pods_known else None,
        nodes=offered if nodes_known else None,
        consumers=users if pods_known else None,
        devices=known,
        at_work=_at_work(known),
        not_counted=_not_counted(snapshot),
    )


def _not_counted(snapshot: Snapshot) -> dict[str, int] | None:
    slices = snapshot.known(listings.DEVICE_SLICES)
    if slices is None:
        return None
    devices: dict[str, int] = {}
    for piece in slices:
        driver = piece.spec.driver
        devices[driver] = devices.get(driver, 0) + len(piece.spec.devices)
    return devices


def _at_work(known: Sequence[Device]) -> int | None:
    utilizations = [device.utilization for device in known if device.utilization is not None]
    return sum(map(at_work, utilizations)) if utilizations else None


def render(report: GpuReport) -> Sequence[Block]:
    uncounted = [
        text(f"Not counted: {counted(devices, 'device')} in ResourceSlices of {driver}", Tone.WARN)
        for driver, devices in sorted((report.not_counted or {}).items())
    ]
    if report.nodes == () and report.consumers == ():
        none = "no GPUs: no node has allocatable GPUs, and no container requests any"
        return [text(none), *uncounted]
    blocks: list[Block] = [text(_totals(report)), *uncounted]
    if report.nodes is not None:
        blocks.append(_nodes(report.nodes))
    if report.consumers is not None:
        blocks.append(_consumers(report.consumers))
    if report.devices:
        blocks.append(_devices(report.devices))
    return blocks


def _totals(report: GpuReport) -> str:
    offered, taken = report.allocatable, report.requested
    if offered is None:
        totals = "GPUs: unknown (nodes could not be listed)"
    elif taken is None:
        totals = f"{offered} GPUs; allocated: unknown (pods could not be listed)"
    else:
        totals = f"{taken} of {offered} GPUs allocated, {offered - taken} free"
    if report.waiting:
        totals += f", {report.waiting} requested by pending pods"
    return totals if report.at_work is None else f"{totals}; {report.at_work} busy"


def _nodes(nodes: Sequence[NodeGpus]) -> Table:
    return table(
        nodes,
        Field("node", lambda row: row.node),
        Field("model", lambda row: row.model or row.vendor),
        Field("count", lambda row: str(row.count), number=True),
        Field("memory", _memory, number=True),
        Field("driver", lambda row: row.driver or "-"),
        Field("cuda", lambda row: row.cuda or "-"),
        Field("mig", _mig),
        Field("sharing", lambda row: f"{row.sharing} x{row.replicas}" if row.sharing else "-"),
        Field("allocated", _allocated, number=True),
        empty="no node has allocatable GPUs",
    )


def _memory(node: NodeGpus) -> str:
    return size(node.memory_mib * 1024 * 1024) if node.memory_mib else "-"


def _allocated(node: NodeGpus) -> str | Cell:
    offered = sum(node.allocatable.values())
    if node.requested is None:
        return f"unknown/{offered}"
    used = sum(node.requested.values())
    return Cell(f"{used}/{offered}", Tone.WARN if used >= offered else Tone.PLAIN)


def _mig(node: NodeGpus) -> str:
    if node.mig_profiles:
        return ", ".join(f"{count}x {name}" for name, count in sorted(node.mig_profiles.items()))
    return {"": "-", "none": "off"}.get(node.mig_strategy, node.mig_strategy)


def _consumers(users: Sequence[Consumer]) -> Table:
    return table(
        users,
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
    needs=(listings.NODES, listings.PODS, listings.GPU_READINGS, listings.DEVICE_SLICES),
    collect=collect,
    render=render,
)
