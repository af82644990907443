"""GPUs of each node, and the containers that request them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.render.blocks import Block, Cell, Field, Table, Tone, table, text
from kvestigate.render.human import counted, or_unknown, size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.gpus import Consumer, at_work
from kvestigate.snapshot.ledger.build import NEEDS, ledger
from kvestigate.snapshot.ledger.claimable import others_of
from kvestigate.snapshot.ledger.model import Count, Device, NodeGpus, Right
from kvestigate.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class GpuReport:
    """None is unknown: nodes, pods, ResourceSlices or ResourceClaims could not be listed."""

    allocatable: int | None
    """Whole GPUs that are offered; divided and shared ones are not in it."""
    requested: int | None
    """Whole GPUs that pods on a node hold, by request or by claim."""
    waiting: int | None
    """Whole GPUs requested by pods that are not scheduled."""
    nodes: tuple[NodeGpus, ...] | None
    consumers: tuple[Consumer, ...] | None
    devices: tuple[Device, ...] | None = ()
    """The GPUs and partitions that something tells apart."""
    at_work: int | None = None
    """GPUs and partitions with a utilization of 1 % or more; None if no utilization is known."""
    physical: int | None = None
    """Physical GPUs, however they are offered."""
    partitions: Count | None = None
    """MIG instances and the like."""
    shares: Count | None = None
    """Replicas of GPUs that containers share."""
    waiting_partitions: int | None = None
    other_devices: dict[str, int] | None = None
    """Driver -> devices of ResourceSlices that are no GPUs; None if they could not be listed."""


def collect(snapshot: Snapshot) -> GpuReport:
    book = snapshot.derived(ledger)
    slices = snapshot.known(listings.DEVICE_SLICES)
    complete = book.nodes is not None and slices is not None
    waiting = book.waiting
    return GpuReport(
        allocatable=book.whole.offered if complete else None,
        requested=book.whole.allocated if complete else None,
        waiting=None if waiting is None else waiting.whole,
        nodes=book.nodes,
        consumers=book.consumers,
        devices=book.devices if book.devices or slices is not None else None,
        at_work=_at_work(book.devices),
        physical=book.physical,
        partitions=book.partitions if complete else None,
        shares=book.shares if complete else None,
        waiting_partitions=None if waiting is None else waiting.partitions,
        other_devices=None if slices is None else others_of(slices),
    )


def _at_work(known: Sequence[Device]) -> int | None:
    utilizations = [device.utilization for device in known if device.utilization is not None]
    return sum(map(at_work, utilizations)) if utilizations else None


def render(report: GpuReport) -> Sequence[Block]:
    blocks: list[Block] = [text(totals(report)), *_notes(report)]
    if report.nodes == () and report.consumers == ():
        return blocks
    if report.nodes is not None:
        blocks.append(_nodes(report.nodes))
    if report.consumers is not None:
        blocks.append(_consumers(report.consumers))
    if report.devices:
        blocks.append(_devices(report.devices))
    return blocks


def totals(report: GpuReport) -> str:
    """`48 of 64 GPUs allocated, 16 free`, with partitions and shares beside whole GPUs."""
    if report.nodes is None:
        return "GPUs: unknown (nodes could not be listed)"
    whole, partitions, shares = (
        sum((getattr(node, form) for node in report.nodes), Count())
        for form in ("whole", "partitions", "shares")
    )
    divided = bool(_any(partitions) or _any(shares))
    if not divided and not _any(whole):
        if not report.nodes and not report.consumers and report.other_devices is None:
            return "GPUs: unknown (resourceslices could not be listed)"
        if not report.nodes and not report.consumers and report.physical == 0:
            return "no GPUs: no node has allocatable GPUs, and no container requests any"
    parts = []
    if not divided or _any(whole):
        noun = "whole GPU" if divided else "GPU"
        parts.append(_allocated_of(whole, noun, report) + _asked(report.waiting))
    if _any(partitions):
        parts.append(
            _allocated_of(partitions, "partition", report) + _asked(report.waiting_partitions)
        )
    if _any(shares):
        parts.append(_allocated_of(shares, "share", report))
    sentence = "; ".join(parts)
    if divided:
        known = "unknown number of" if report.physical is None else str(report.physical)
        sentence = f"{known} GPUs: {sentence}"
    return sentence if report.at_work is None else f"{sentence}; {report.at_work} busy"


def _any(count: Count) -> bool:
    return bool(count.offered or count.allocated)


def _asked(waiting: int | None) -> str:
    return f", {waiting} requested by pending pods" if waiting else ""


def _allocated_of(count: Count, noun: str, report: GpuReport) -> str:
    if count.allocated is None:
        unread = "pods" if report.consumers is None else "resourceclaims"
        return f"{counted(count.offered, noun)}; allocated: unknown ({unread} could not be listed)"
    return f"{count.allocated} of {counted(count.offered, noun)} allocated, {count.free} free"


def _notes(report: GpuReport) -> list[Block]:
    """What the totals leave out, and why."""
    notes: list[Block] = []
    if report.nodes and report.other_devices is None:
        why = "GPUs of ResourceSlices: unknown (resourceslices could not be listed)"
        notes.append(text(why, Tone.WARN))
    notes += [
        text(
            f"GPUs of {node.node}: unknown (it offers partitions, and neither its labels nor a "
            "GPU exporter say of how many GPUs)",
            Tone.WARN,
        )
        for node in report.nodes or ()
        if node.count is None
    ]
    notes += [
        text(f"{counted(devices, 'device')} of {driver}: no GPUs, not counted", Tone.DIM)
        for driver, devices in sorted((report.other_devices or {}).items())
    ]
    return notes


def _nodes(nodes: Sequence[NodeGpus]) -> Table:
    return table(
        nodes,
        Field("node", lambda row: row.node or "(no node)"),
        Field("model", lambda row: row.model or row.vendor),
        Field("GPUs", lambda row: or_unknown(row.count), number=True),
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
    forms = [(node.whole, ""), (node.partitions, " parts"), (node.shares, " shares")]
    shown = [(count, unit) for count, unit in forms if _any(count)] or forms[:1]
    words = ", ".join(
        f"{or_unknown(count.allocated)}/{count.offered}{unit}" for count, unit in shown
    )
    full = all(count.allocated is not None and not (count.free or 0) > 0 for count, _ in shown)
    return Cell(words, Tone.WARN if full else Tone.PLAIN)


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
        Field("node", lambda row: row.node or "(no node)"),
        Field("gpu", lambda row: row.index or "-", number=True),
        Field("uuid", lambda row: row.uuid),
        Field("part", lambda row: row.profile or "-"),
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
        Field("used by", _user),
    )


def _user(device: Device) -> str:
    if device.user is None:
        return "-"
    if device.claims and device.user:
        return f"{device.user} (claim {', '.join(device.claims)})"
    if device.right is Right.NONE:
        return "(a process without a pod)"
    return device.user or "(not allocated)"


REPORT = Report(
    name="gpu",
    summary="GPU model, memory, driver, MIG and allocation per node, and the pods that hold GPUs.",
    needs=NEEDS,
    collect=collect,
    render=render,
)
