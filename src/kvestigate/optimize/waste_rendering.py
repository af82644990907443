"""Who holds GPUs for nothing, as blocks that fit on a screen. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.optimize.waste import Waste
from kvestigate.render.blocks import Block, Cell, Field, Table, Tone, next_command, table, text
from kvestigate.render.human import counted
from kvestigate.reports.cost import amount, cost_notes, headline, mib, money
from kvestigate.snapshot.ledger.spending import Group

_SHOWN = 15
"""Groups on one screen; the JSON has all."""


def waste_blocks(waste: Waste) -> Sequence[Block]:
    spending = waste.spending
    if not spending.groups:
        return [text("no pod holds GPUs"), *cost_notes(spending)]
    idle = [group for group in spending.groups if group.idle.gpus]
    blocks: list[Block] = [text(headline(spending), Tone.STRONG), *cost_notes(spending)]
    if idle:
        blocks.append(_idle(waste, idle[:_SHOWN]))
        if len(idle) > _SHOWN:
            blocks.append(text(f"... and {len(idle) - _SHOWN} more", Tone.DIM))
    elif not spending.unmeasured.gpus:
        blocks.append(text("no pod holds idle GPUs", Tone.GOOD))
    unmeasured = sum(bool(group.unmeasured.gpus) for group in spending.groups)
    if unmeasured:
        words = f"utilization of {counted(unmeasured, spending.by)}: unknown"
        why = "no GPU exporter measured all of their GPUs; `optimize probe-gpu` asks nvidia-smi"
        blocks.append(text(f"{words} ({why})", Tone.WARN))
    if waste.served is None:
        why = "reading metrics of pods is forbidden"
        blocks.append(text(f"requests of model servers: unknown ({why})", Tone.WARN))
    if idle and not all(group.idle_since for group in idle) and not waste.looks:
        words = "to see since when GPUs are idle, keep a history: "
        blocks.append(next_command(words, "kvestigate optimize watch --keep FILE"))
    return blocks


def _idle(waste: Waste, groups: Sequence[Group]) -> Table:
    spending = waste.spending
    return table(
        groups,
        Field(spending.by, lambda row: row.name),
        Field(
            "idle GPUs",
            lambda row: f"{amount(row.idle.gpus)} of {amount(row.held.gpus)}",
            number=True,
        ),
        Field("memory", lambda row: mib(row.memory_mib), number=True),
        Field("held since", lambda row: f"{row.since:%Y-%m-%d %H:%M}" if row.since else "unknown"),
        Field("idle since", _idle_since),
        Field("a month", lambda row: Cell(money(row.idle, spending), Tone.WARN), number=True),
    )


def _idle_since(group: Group) -> str:
    requests = ", 0 requests" if group.never_used else ""
    return f"{group.idle_since:%Y-%m-%d %H:%M}{requests}" if group.idle_since else "unknown"
