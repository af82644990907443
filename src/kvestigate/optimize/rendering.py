"""Analyses, plans and their application as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kvestigate.nodeops.evict import BLOCKED, FAILED, GONE, LEAVING
from kvestigate.optimize.apply import Application
from kvestigate.optimize.consolidation import Consolidation, KeptPod, Projection, Role, Tunables
from kvestigate.optimize.fragmentation import Fragmentation, NodeFill
from kvestigate.optimize.model import Fill
from kvestigate.optimize.steps import KEPT, MOVED, Step
from kvestigate.render.blocks import (
    Block,
    Cell,
    Facts,
    Field,
    Table,
    Tone,
    next_command,
    table,
    text,
)
from kvestigate.render.human import counted, or_unknown

_FILL = {Fill.EMPTY: Tone.GOOD, Fill.PARTIAL: Tone.WARN, Fill.FULL: Tone.PLAIN}
_OUTCOME = {
    MOVED: Tone.GOOD,
    GONE: Tone.WARN,
    BLOCKED: Tone.WARN,
    LEAVING: Tone.WARN,
    KEPT: Tone.WARN,
    FAILED: Tone.BAD,
}


_UNCHECKED = (
    "only GPUs are counted: an audit file does not have taints, affinity, volumes, budgets and "
    "controllers; --live checks them"
)


def analysis_blocks(analysis: Fragmentation, source: str = "--live") -> Sequence[Block]:
    verdict = (
        text("consolidation opportunity: yes", Tone.WARN)
        if analysis.opportunity
        else text("consolidation opportunity: no", Tone.GOOD)
    )
    nodes = counted(len(analysis.nodes), "node")
    return [
        _captured(analysis.server, analysis.captured_at),
        _fills(analysis.nodes),
        Facts(
            (
                ("capacity", f"{_capacity(analysis)} on {nodes}"),
                ("allocated", f"{analysis.allocated} = requested by pods, used or not"),
                ("free", f"{analysis.free} = capacity - allocated"),
                ("waiting", f"{analysis.waiting} = requested by pending pods"),
                ("full", f"{counted(analysis.full, 'node')} with no free GPU"),
                ("partial", f"{counted(analysis.partial, 'node')} with allocated and free GPUs"),
                ("empty", f"{counted(analysis.empty, 'node')} with no allocated GPU"),
                ("stranded", f"{analysis.stranded} = free GPUs on partial nodes"),
                ("largest block", f"{analysis.largest_block} = most free GPUs on a single node"),
            )
        ),
        verdict,
        text(
            "rule: total_free > largest_block AND partial > 1, here "
            f"{analysis.free} > {analysis.largest_block} and {analysis.partial} > 1",
            Tone.DIM,
        ),
        *(
            [next_command("next: ", f"kvestigate optimize plan {source}")]
            if analysis.opportunity
            else []
        ),
    ]


def _capacity(analysis: Fragmentation) -> str:
    """`64 GPUs`, or `32 devices (6 GPUs)` where GPUs are divided or shared."""
    if analysis.physical == analysis.capacity:
        return counted(analysis.capacity, "GPU")
    return f"{counted(analysis.capacity, 'device')} ({or_unknown(analysis.physical)} GPUs)"


def _fills(nodes: Sequence[NodeFill]) -> Table:
    return table(
        nodes,
        Field("node", lambda row: row.name),
        Field("model", lambda row: row.model or "-", wide=True),
        Field("allocated", lambda row: f"{row.allocated}/{row.capacity}", number=True),
        Field("share", lambda row: _share(row.allocated, row.capacity), number=True),
        Field("free", lambda row: str(row.free), number=True),
        Field("pods", lambda row: str(row.pods), number=True),
        Field("state", lambda row: Cell(row.fill.value, _FILL[row.fill])),
        Field("schedulable", lambda row: Cell(row.closed, Tone.WARN) if row.closed else "yes"),
        empty="no node has allocatable GPUs",
    )


def plan_blocks(plan: Consolidation) -> Sequence[Block]:
    return [
        _captured(plan.server, plan.captured_at),
        _tunables(plan.tunables),
        _rules(plan.tunables),
        *([] if plan.checked else [text(_UNCHECKED, Tone.WARN)]),
        *(text(note, Tone.WARN) for note in plan.notes),
        _moves(plan),
        *_staying("not moved because no target fits:", plan.unplaceable),
        *_staying("not moved:", plan.held),
        _projections(plan.nodes),
        text(headline(plan), Tone.GOOD if plan.moves else Tone.PLAIN),
        *_wanted(plan),
    ]


def headline(plan: Consolidation) -> str:
    """`2 moves; empties node-01, node-02; fills node-08 (50% -> 75%); empty nodes 0 -> 2`"""
    if not plan.moves:
        return f"no moves; empty nodes: {plan.empty_before}"
    dense = ", ".join(
        f"{node.node} ({_share(node.before, node.capacity)} -> {_share(node.after, node.capacity)})"
        for node in plan.nodes
        if node.change > 0
    )
    parts = [
        counted(len(plan.moves), "move"),
        f"empties {', '.join(plan.drained) or 'no node'}",
        f"fills {dense}",
        f"empty nodes {plan.empty_before} -> {plan.empty_after}",
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
            ("--delete-emptydir-data", "yes" if tunables.delete_emptydir_data else "no"),
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


def _moves(plan: Consolidation) -> Table:
    return table(
        plan.moves,
        Field("move", lambda row: f"{row.namespace}/{row.pod}"),
        Field("gpus", lambda row: str(row.gpus), number=True),
        Field("from", lambda row: row.donor),
        Field("to", lambda row: row.target),
        empty="no moves",
    )


def _staying(heading: str, pods: Sequence[KeptPod]) -> Sequence[Block]:
    if not pods:
        return []
    return [
        text(heading, Tone.STRONG),
        table(
            pods,
            Field("pod", lambda row: f"{row.namespace}/{row.pod}"),
            Field("gpus", lambda row: str(row.gpus), number=True),
            Field("node", lambda row: row.node),
            Field("reason", lambda row: row.reason),
        ),
    ]


def _projections(nodes: Sequence[Projection]) -> Table:
    return table(
        nodes,
        Field("node", lambda row: row.node),
        Field(
            "role",
            lambda row: Cell(
                row.role.value or "-", Tone.DIM if row.role is Role.NONE else Tone.PLAIN
            ),
        ),
        Field("because", lambda row: row.why),
        Field("now", lambda row: f"{row.before}/{row.capacity}", number=True),
        Field("after", lambda row: f"{row.after}/{row.capacity}", number=True),
        Field(
            "change",
            lambda row: Cell(f"{row.change:+d}" if row.change else "0", _change_tone(row)),
            number=True,
        ),
        Field(
            "share",
            lambda row: f"{_share(row.before, row.capacity)} -> {_share(row.after, row.capacity)}",
        ),
        empty="no node has allocatable GPUs",
    )


def _change_tone(node: Projection) -> Tone:
    return Tone.PLAIN if not node.change else Tone.GOOD if not node.after else Tone.WARN


def _wanted(plan: Consolidation) -> Sequence[Block]:
    wanted = plan.tunables.min_free_nodes
    if plan.enough_empty:
        return [text(f"wanted empty nodes: {wanted}, reached", Tone.DIM)]
    way = "raise --donor-max-util for more donors, or lower it for more targets"
    return [text(f"wanted empty nodes: {wanted}, not reached; {way}", Tone.WARN)]


def application_blocks(application: Application) -> Sequence[Block]:
    def outcome(step: Step) -> str | Cell:
        if not application.applied and step.outcome != KEPT:
            return "evict"
        return Cell(step.outcome, _OUTCOME.get(step.outcome, Tone.PLAIN))

    steps = table(
        application.steps,
        Field("wave", lambda step: str(step.wave or "-"), number=True),
        Field("pod", lambda step: f"{step.namespace}/{step.pod}"),
        Field("gpus", lambda step: str(step.gpus), number=True),
        Field("from", lambda step: step.donor),
        Field("to", lambda step: step.target),
        Field("outcome", outcome),
        Field("reason", lambda step: step.reason or "-"),
    )
    before = [] if application.applied else plan_blocks(application.plan)
    return [*before, *([steps] if application.steps else []), *_did(application)]


def _did(application: Application) -> Sequence[Block]:
    if application.nothing_to_do:
        kept = application.count(KEPT)
        why = f": {counted(kept, 'move')} not possible now" if kept else ""
        return [text(f"no pods to move{why}")]
    going = sum(bool(step.wave) for step in application.steps)
    donors = ", ".join(application.donors)
    if not application.applied:
        waves = f"{counted(application.waves, 'wave')} of up to {application.wave_size}"
        return [text(f"would empty {donors}: move {counted(going, 'pod')} in {waves}")]
    moved = f"{application.count(MOVED)} of {going} pods moved"
    empty = f"empty nodes {application.plan.empty_before} -> {_now(application)}"
    if application.stopped:
        promised = f"{application.plan.empty_after} were planned"
        reached = f"goal not reached: {moved}; {empty} ({promised})"
        return [
            text(f"stopped: {application.stopped}", Tone.BAD),
            text(reached, Tone.BAD),
            *_cordoned(application),
        ]
    reached = f"reached: {moved}; {donors} empty; {empty}"
    return [text(reached, Tone.GOOD), *_cordoned(application)]


def _now(application: Application) -> str:
    return "unknown" if application.empty_now is None else str(application.empty_now)


def _cordoned(application: Application) -> Sequence[Block]:
    flag = "--i-understand-this-modifies-cluster"
    if not application.emptied:
        return [text("no node is cordoned by this command any more")]
    return [
        next_command(
            f"{node} stays cordoned; to open it: ", f"kvestigate node uncordon {node} {flag}"
        )
        for node in application.emptied
    ]


def _captured(server: str, when: datetime) -> Block:
    return text(f"{server}, captured at {when:%Y-%m-%d %H:%M:%S} UTC", Tone.DIM)


def _share(count: int, capacity: int) -> str:
    """As a percentage, rounded as in the other tables."""
    return f"{count / capacity:.0%}" if capacity else "-"
