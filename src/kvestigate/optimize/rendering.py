"""Analyses, plans and what became of them, as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kvestigate.nodeops.evict import BLOCKED, FAILED, GONE, LEAVING
from kvestigate.optimize.apply import Application
from kvestigate.optimize.consolidation import Consolidation, Projection, Role, Staying, Tunables
from kvestigate.optimize.fragmentation import Fragmentation, NodeFill
from kvestigate.optimize.model import Fill
from kvestigate.optimize.steps import KEPT
from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, text

_FILL = {Fill.EMPTY: Tone.GOOD, Fill.PARTIAL: Tone.WARN, Fill.FULL: Tone.PLAIN}
_OUTCOME = {
    GONE: Tone.GOOD,
    BLOCKED: Tone.WARN,
    LEAVING: Tone.WARN,
    KEPT: Tone.WARN,
    FAILED: Tone.BAD,
}


def analysis_blocks(found: Fragmentation, source: str = "--live") -> Sequence[Block]:
    verdict = (
        text("consolidation opportunity: yes", Tone.WARN)
        if found.opportunity
        else text("consolidation opportunity: no", Tone.GOOD)
    )
    return [
        _captured(found.server, found.captured_at),
        _fills(found.nodes),
        Facts(
            (
                ("capacity", f"{_gpus(found.capacity)} on {_nodes(len(found.nodes))}"),
                ("allocated", f"{found.allocated} = what pods request, used or not"),
                ("free", f"{found.free} = capacity - allocated"),
                ("waiting", f"{found.waiting} = requested by pods that have no node"),
                ("full", f"{_nodes(found.full)} with nothing free"),
                ("partial", f"{_nodes(found.partial)} with something allocated and something free"),
                ("empty", f"{_nodes(found.empty)} with nothing allocated"),
                ("stranded", f"{found.stranded} = free GPUs on partial nodes"),
                ("largest block", f"{found.largest_block} = most free GPUs on a single node"),
            )
        ),
        verdict,
        text(
            "rule: total_free > largest_block AND partial > 1, here "
            f"{found.free} > {found.largest_block} and {found.partial} > 1",
            Tone.DIM,
        ),
        *(
            [text(f"next: kvestigate optimize plan {source}", Tone.DIM)]
            if found.opportunity
            else []
        ),
    ]


def _fills(nodes: Sequence[NodeFill]) -> Table:
    columns = (
        Column("node"),
        Column("model", wide=True),
        Column("allocated", number=True),
        Column("share", number=True),
        Column("free", number=True),
        Column("pods", number=True),
        Column("state"),
        Column("new pods"),
    )
    rows: list[list[str | Cell]] = [
        [
            it.name,
            it.model or "-",
            f"{it.allocated}/{it.capacity}",
            _share(it.allocated, it.capacity),
            str(it.free),
            str(it.pods),
            Cell(it.fill.value, _FILL[it.fill]),
            Cell(it.closed, Tone.WARN) if it.closed else "yes",
        ]
        for it in nodes
    ]
    return Table(columns, rows, empty="no node offers GPUs")


def plan_blocks(found: Consolidation) -> Sequence[Block]:
    return [
        _captured(found.server, found.captured_at),
        _tunables(found.tunables),
        _rules(found.tunables),
        *(text(note, Tone.WARN) for note in found.notes),
        _moves(found),
        *_staying("unplaceable, and not moved:", found.unplaceable),
        *_staying("held, and not moved:", found.held),
        _projections(found.nodes),
        text(headline(found), Tone.GOOD if found.moves else Tone.PLAIN),
        *_wanted(found),
    ]


def headline(found: Consolidation) -> str:
    """`2 moves; drains node-01, node-02; densifies node-08 (50% -> 75%); empty nodes 0 -> 2`"""
    if not found.moves:
        return f"nothing to move; empty nodes stay {found.empty_before}"
    count = len(found.moves)
    dense = ", ".join(
        f"{it.node} ({_share(it.before, it.capacity)} -> {_share(it.after, it.capacity)})"
        for it in found.nodes
        if it.change > 0
    )
    parts = [
        f"{count} {'move' if count == 1 else 'moves'}",
        f"drains {', '.join(found.drained) or 'no node'}",
        f"densifies {dense}",
        f"empty nodes {found.empty_before} -> {found.empty_after}",
    ]
    return "; ".join(parts)


def _tunables(tunables: Tunables) -> Facts:
    return Facts(
        (
            ("--donor-max-util", f"{tunables.donor_max_util:g}"),
            ("--min-free-nodes", f"{tunables.min_free_nodes} (reported, not enforced)"),
            ("--exclude-namespace", ", ".join(tunables.exclude_namespaces) or "-"),
            ("--exclude-node", ", ".join(tunables.exclude_nodes) or "-"),
            ("--pin", ", ".join(tunables.pins) or "-"),
        )
    )


def _rules(tunables: Tunables) -> Facts:
    limit = f"{tunables.donor_max_util:g}"
    return Facts(
        (
            ("donor", f"0 < allocated / capacity < {limit}; it is emptied"),
            (
                "target",
                f"allocated / capacity >= {limit}, something free, takes new pods; it is filled",
            ),
            (
                "placement",
                "largest pod first, onto the target of the same GPU model with the least room "
                "that suffices",
            ),
        )
    )


def _moves(found: Consolidation) -> Table:
    columns = (Column("move"), Column("gpus", number=True), Column("from"), Column("to"))
    rows = [[f"{it.namespace}/{it.pod}", str(it.gpus), it.donor, it.target] for it in found.moves]
    return Table(columns, rows, empty="no pod is to be moved")


def _staying(heading: str, pods: Sequence[Staying]) -> Sequence[Block]:
    if not pods:
        return []
    columns = (Column("pod"), Column("gpus", number=True), Column("node"), Column("reason"))
    rows = [[f"{it.namespace}/{it.pod}", str(it.gpus), it.node, it.reason] for it in pods]
    return [text(heading, Tone.STRONG), Table(columns, rows)]


def _projections(nodes: Sequence[Projection]) -> Table:
    columns = (
        Column("node"),
        Column("role"),
        Column("because"),
        Column("now", number=True),
        Column("then", number=True),
        Column("change", number=True),
        Column("share"),
    )
    rows: list[list[str | Cell]] = [
        [
            it.node,
            Cell(it.role.value or "-", Tone.DIM if it.role is Role.NONE else Tone.PLAIN),
            it.why,
            f"{it.before}/{it.capacity}",
            f"{it.after}/{it.capacity}",
            Cell(f"{it.change:+d}" if it.change else "0", _change_tone(it)),
            f"{_share(it.before, it.capacity)} -> {_share(it.after, it.capacity)}",
        ]
        for it in nodes
    ]
    return Table(columns, rows, empty="no node offers GPUs")


def _change_tone(it: Projection) -> Tone:
    return Tone.PLAIN if not it.change else Tone.GOOD if not it.after else Tone.WARN


def _wanted(found: Consolidation) -> Sequence[Block]:
    wanted = found.tunables.min_free_nodes
    if found.enough_empty:
        return [text(f"wanted empty: {wanted}, met", Tone.DIM)]
    way = "raise --donor-max-util to empty more, or lower it to have more targets"
    return [text(f"wanted empty: {wanted}, not met; {way}", Tone.WARN)]


def application_blocks(found: Application) -> Sequence[Block]:
    columns = (
        Column("wave", number=True),
        Column("pod"),
        Column("gpus", number=True),
        Column("from"),
        Column("room on"),
        Column("outcome"),
        Column("reason"),
    )
    rows: list[list[str | Cell]] = [
        [
            str(it.wave or "-"),
            f"{it.namespace}/{it.pod}",
            str(it.gpus),
            it.donor,
            it.target,
            Cell(it.outcome, _OUTCOME.get(it.outcome, Tone.PLAIN))
            if found.applied or it.outcome == KEPT
            else "evict",
            it.reason or "-",
        ]
        for it in found.steps
    ]
    before = [] if found.applied else plan_blocks(found.plan)
    return [*before, *([Table(columns, rows)] if rows else []), *_did(found)]


def _did(found: Application) -> Sequence[Block]:
    if found.nothing_to_do:
        kept = f": {found.count(KEPT)} of the moves cannot be made now" if found.steps else ""
        return [text(f"there is nothing to evict{kept}")]
    donors = ", ".join(found.cordon)
    going = sum(bool(it.wave) for it in found.steps)
    waves = f"{found.waves} {'wave' if found.waves == 1 else 'waves'} of up to {found.wave_size}"
    if not found.applied:
        pods = "pod" if going == 1 else "pods"
        return [text(f"would cordon {donors} and evict {going} {pods} in {waves}")]
    said = f"cordoned {donors}; {found.count(GONE)} of {going} pods are gone"
    if found.stopped:
        stop = f"{said}; stopped in wave {found.stopped} of {found.waves}"
        return [text(stop, Tone.BAD), *_open_again(found)]
    return [text(f"{said}, in {waves}", Tone.GOOD), *_open_again(found)]


def _open_again(found: Application) -> Sequence[Block]:
    flag = "--i-understand-this-modifies-cluster"
    return [
        text(f"to open it again: kvestigate node uncordon {node} {flag}", Tone.DIM)
        for node in found.cordon
    ]


def _captured(server: str, when: datetime) -> Block:
    return text(f"{server}, captured at {when:%Y-%m-%d %H:%M:%S} UTC", Tone.DIM)


def _share(count: int, capacity: int) -> str:
    """Halves are rounded to even, as the percentages of other tables are."""
    return f"{count / capacity:.0%}" if capacity else "-"


def _gpus(count: int) -> str:
    return f"{count} {'GPU' if count == 1 else 'GPUs'}"


def _nodes(count: int) -> str:
    return f"{count} {'node' if count == 1 else 'nodes'}"
