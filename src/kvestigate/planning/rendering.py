"""A plan as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.kube.requests import CPU, MEMORY, PODS
from kvestigate.planning.explain import amount
from kvestigate.planning.model import GPU
from kvestigate.planning.plan import NodeRow, Plan
from kvestigate.planning.strategies import STRATEGIES
from kvestigate.render.blocks import Block, Cell, Column, Field, Table, Tone, table, text
from kvestigate.render.human import cores, counted, size
from kvestigate.snapshot.gpus import MIG_PREFIX, vendor_of

_SHOWN = 50
"""Nodes shown in a table; the JSON has all."""


def plan_blocks(plan: Plan) -> Sequence[Block]:
    need = ", ".join(amount(name, count) for name, count in plan.need.items() if name != PODS)
    demand = f"{counted(plan.replicas, 'replica')} of {need}"
    notes = [text(note, Tone.DIM) for note in plan.notes]
    if not plan.fits:
        return [
            text(f"{demand}: does not fit", Tone.BAD),
            text(plan.problem),
            *(text(way) for way in plan.ways_out),
            *notes,
            _free(plan.nodes, _gpu_resource(plan)),
        ]
    return [text(f"{demand}: fits", Tone.GOOD), *notes, _comparison(plan), _placements(plan)]


def _comparison(plan: Plan) -> Table:
    summaries = {strategy.name: strategy.summary for strategy in STRATEGIES}
    return table(
        plan.proposals,
        Field("strategy", lambda row: row.strategy),
        Field("nodes", lambda row: str(row.nodes), number=True),
        Field("max per node", lambda row: str(max(row.placement.values(), default=0)), number=True),
        Field("how", lambda row: summaries[row.strategy]),
    )


def _placements(plan: Plan) -> Table:
    """One column for each strategy, so that they stand side by side."""
    slots = {row.name: row.slots for row in plan.nodes}
    names = sorted({node for proposal in plan.proposals for node in proposal.placement})
    rows = [
        [
            node,
            str(slots[node]),
            *(str(proposal.placement.get(node, "-")) for proposal in plan.proposals),
        ]
        for node in names[:_SHOWN]
    ]
    if len(names) > _SHOWN:
        rows.append([f"... and {len(names) - _SHOWN} more", "", *("" for _ in plan.proposals)])
    columns = (
        Column("node"),
        Column("fits", number=True),
        *(Column(proposal.strategy, number=True) for proposal in plan.proposals),
    )
    return Table(columns, rows)


def _gpu_resource(plan: Plan) -> str:
    """The GPU resource that the demand names; GPUs of any kind if it names none."""
    return next((name for name in plan.need if vendor_of(name)), GPU)


def _free(nodes: Sequence[NodeRow], gpus: str) -> Table:
    """`gpus` is the resource whose free amount is shown: the one that decides what fits."""
    partition = gpus.startswith(MIG_PREFIX)
    columns = (
        Column("node"),
        Column(f"free {gpus.removeprefix(MIG_PREFIX)}" if partition else "free gpus", number=True),
        Column("free cpu", number=True),
        Column("free memory", number=True),
        Column("fits", number=True),
        Column("not usable because"),
    )
    ordered = sorted(nodes, key=lambda row: (bool(row.barred), -row.free.get(gpus, 0), row.name))
    rows: list[list[str | Cell]] = [
        [
            row.name,
            str(row.free.get(gpus, 0)),
            cores(row.free.get(CPU, 0) / 1000),
            size(row.free.get(MEMORY, 0)),
            str(row.slots),
            Cell(row.barred or "-", Tone.WARN if row.barred else Tone.PLAIN),
        ]
        for row in ordered[:_SHOWN]
    ]
    if len(ordered) > _SHOWN:
        rows.append([f"... and {len(ordered) - _SHOWN} more", "", "", "", "", ""])
    return Table(columns, rows, empty="no nodes")
