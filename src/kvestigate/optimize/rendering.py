"""Analyses, plans and their application as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kvestigate.nodeops.evict import BLOCKED, FAILED, GONE, LEAVING
from kvestigate.optimize.apply import Application
from kvestigate.optimize.consolidation import Consolidation, KeptPod, Projection, Role, Tunables
from kvestigate.optimize.fragmentation import Fragmentation, NodeFill
from kvestigate.optimize.model import Fill
from kvestigate.optimize.steps import KEPT
from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, text
from kvestigate.render.human import counted

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
                (
                    "capacity",
                    f"{counted(found.capacity, 'GPU')} on {counted(len(found.nodes), 'node')}",
                ),
                ("allocated", f"{found.allocated} = requested by pods, used or not"),
                ("free", f"{found.free} = capacity - allocated"),
                ("waiting", f"{found.waiting} = requested by pending pods"),
                ("full", f"{counted(found.full, 'node')} with no free GPU"),
                ("partial", f"{counted(found.partial, 'node')} with allocated and free GPUs"),
                ("empty", f"{counted(found.empty, 'node')} with no allocated GPU"),
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
        Column("schedulable"),
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
    return Table(columns, rows, empty="no node has allocatable GPUs")


def plan_blocks(found: Consolidation) -> Sequence[Block]:
    return [
        _captured(found.server, found.captured_at),
        _tunables(found.tunables),
        _rules(found.tunables),
        *(text(note, Tone.WARN) for note in found.notes),
        _moves(found),
        *_staying("not moved because no target fits:", found.unplaceable),
        *_staying("not moved because excluded or pinned:", found.held),
        _projections(found.nodes),
        text(headline(found), Tone.GOOD if found.moves else Tone.PLAIN),
        *_wanted(found),
    ]


def headline(found: Consolidation) -> str:
    """`2 moves; empties node-01, node-02; fills node-08 (50% -> 75%); empty nodes 0 -> 2`"""
    if not found.moves:
        return f"no moves; empty nodes: {found.empty_before}"
    dense = ", ".join(
        f"{it.node} ({_share(it.before, it.capacity)} -> {_share(it.after, it.capacity)})"
        for it in found.nodes
        if it.change > 0
    )
    parts = [
        counted(len(found.moves), "move"),
        f"empties {', '.join(found.drained) or 'no node'}",
        f"fills {dense}",
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
            ("donor", f"0 < allocated / capacity < {limit}: its pods are moved away"),
            (
                "target",
                f"allocated / capacity >= {limit}, free GPUs, schedulable: pods are moved here",
            ),
            (
                "placement",
                "largest pod first, on the fitting target of the same GPU model with the fewest "
                "free GPUs",
            ),
        )
    )


def _moves(found: Consolidation) -> Table:
    columns = (Column("move"), Column("gpus", number=True), Column("from"), Column("to"))
    rows = [[f"{it.namespace}/{it.pod}", str(it.gpus), it.donor, it.target] for it in found.moves]
    return Table(columns, rows, empty="no moves")


def _staying(heading: str, pods: Sequence[KeptPod]) -> Sequence[Block]:
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
        Column("after", number=True),
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
    return Table(columns, rows, empty="no node has allocatable GPUs")


def _change_tone(it: Projection) -> Tone:
    return Tone.PLAIN if not it.change else Tone.GOOD if not it.after else Tone.WARN


def _wanted(found: Consolidation) -> Sequence[Block]:
    wanted = found.tunables.min_free_nodes
    if found.enough_empty:
        return [text(f"wanted empty nodes: {wanted}, reached", Tone.DIM)]
    way = "raise --donor-max-util for more donors, or lower it for more targets"
    return [text(f"wanted empty nodes: {wanted}, not reached; {way}", Tone.WARN)]


def application_blocks(found: Application) -> Sequence[Block]:
    columns = (
        Column("wave", number=True),
        Column("pod"),
        Column("gpus", number=True),
        Column("from"),
        Column("fits on"),
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
        kept = f": {counted(found.count(KEPT), 'move')} not possible now" if found.steps else ""
        return [text(f"no pods to evict{kept}")]
    donors = ", ".join(found.cordon)
    going = sum(bool(it.wave) for it in found.steps)
    waves = f"{counted(found.waves, 'wave')} of up to {found.wave_size}"
    if not found.applied:
        return [text(f"would cordon {donors} and evict {counted(going, 'pod')} in {waves}")]
    said = f"cordoned {donors}; {found.count(GONE)} of {going} pods evicted"
    if found.stopped:
        stop = f"{said}; stopped in wave {found.stopped} of {found.waves}"
        return [text(stop, Tone.BAD), *_open_again(found)]
    return [text(f"{said}, in {waves}", Tone.GOOD), *_open_again(found)]


def _open_again(found: Application) -> Sequence[Block]:
    flag = "--i-understand-this-modifies-cluster"
    return [
        text(f"to undo: kvestigate node uncordon {node} {flag}", Tone.DIM) for node in found.cordon
    ]


def _captured(server: str, when: datetime) -> Block:
    return text(f"{server}, captured at {when:%Y-%m-%d %H:%M:%S} UTC", Tone.DIM)


def _share(count: int, capacity: int) -> str:
    """As a percentage, rounded as in the other tables."""
    return f"{count / capacity:.0%}" if capacity else "-"
