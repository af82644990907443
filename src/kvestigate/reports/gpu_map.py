"""A square for every GPU of a cluster: allocated or not, and busy or idle if measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kvestigate.render.human import or_unknown, size
from kvestigate.reports.gpu import GpuReport
from kvestigate.snapshot.gpus import at_work, occupied
from kvestigate.snapshot.ledger.model import Device, NodeGpus

_SQUARE = 14
_LEGEND = (
    ("used", "allocated, busy"),
    ("idle", "allocated, idle"),
    ("over", "in use, not allocated"),
    ("free", "free"),
)


def gpu_map(report: GpuReport) -> str:
    measured: dict[str, list[Device]] = {}
    for device in report.devices or ():
        if device.utilization is not None:
            measured.setdefault(device.node, []).append(device)
    body = "".join(
        f"<tr><td>{escape(node.node)}</td><td>{_row(node, measured.get(node.node, ()))}</td>"
        f'<td class="dim">{escape(node.model or node.vendor)}</td></tr>'
        for node in report.nodes or ()
    )
    legend = f'<p class="legend">{_legend()}</p>' if measured else ""
    return f"<table><tbody>{body}</tbody></table>{legend}"


def _row(node: NodeGpus, devices: Sequence[Device]) -> str:
    total = node.whole + node.partitions + node.shares
    offered, taken = total.offered, total.allocated or 0
    label = f"{or_unknown(total.allocated)} of {offered} allocated"
    if not devices:
        kinds = [("used" if index < taken else "free", "") for index in range(offered)]
        return _squares(kinds, label)
    busy = sum(at_work(device.utilization) for device in devices)
    return _squares(
        [(_kind(device), _tooltip(device)) for device in devices], f"{label}, {busy} busy"
    )


def _kind(device: Device) -> str:
    if device.user:
        return "used" if at_work(device.utilization) else "idle"
    return "over" if occupied(device.utilization, device.memory_used_mib) else "free"


def _tooltip(device: Device) -> str:
    memory = device.memory_used_mib
    in_use = f"{size(int(memory) * 1024 * 1024)} in use" if memory is not None else ""
    parts = (
        f"GPU {device.index}",
        f"{device.utilization:.0f} %",
        in_use,
        device.user or "not allocated",
    )
    return ", ".join(part for part in parts if part)


def _squares(kinds: Sequence[tuple[str, str]], label: str) -> str:
    squares = "".join(_square(index, kind, tooltip) for index, (kind, tooltip) in enumerate(kinds))
    width = max(len(kinds) * (_SQUARE + 2), 1)
    return (
        f'<svg width="{width}" height="{_SQUARE}" role="img" aria-label="{label}">{squares}</svg>'
        f" {label}"
    )


def _square(index: int, kind: str, tooltip: str = "") -> str:
    rect = f'rect class="{kind}" x="{index * (_SQUARE + 2)}" width="{_SQUARE}" height="{_SQUARE}"'
    return f"<{rect}><title>{escape(tooltip)}</title></rect>" if tooltip else f"<{rect}/>"


def _legend() -> str:
    return " ".join(
        f'<span><svg width="{_SQUARE}" height="{_SQUARE}" aria-hidden="true">'
        f"{_square(0, kind)}</svg> {words}</span>"
        for kind, words in _LEGEND
    )
