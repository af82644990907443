"""Evictions as blocks."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.nodeops.evict import BLOCKED, FAILED, GONE, LEAVING, Evictions
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone, text
from kvestigate.render.human import counted

_TONES = {GONE: Tone.GOOD, BLOCKED: Tone.WARN, LEAVING: Tone.WARN, FAILED: Tone.BAD}


def evictions_blocks(found: Evictions) -> Sequence[Block]:
    columns = (Column("namespace"), Column("pod"), Column("outcome"), Column("reason"))
    rows: list[list[str | Cell]] = [
        [
            it.namespace,
            it.name,
            Cell(it.outcome, _TONES.get(it.outcome, Tone.PLAIN)) if found.applied else "evict",
            it.reason or "-",
        ]
        for it in found.pods
    ]
    rows += [[it.namespace, it.name, Cell("skip", Tone.DIM), it.reason] for it in found.skipped]
    return [text(_heading(found)), *([Table(columns, rows)] if rows else [])]


def _heading(found: Evictions) -> str:
    count = len(found.pods)
    if found.nothing_to_do:
        return "no pods to evict"
    if found.applied:
        first = f"node {found.node} is cordoned; " if found.cordon else ""
        return f"{first}{found.count(GONE)} of {count} pods evicted"
    first = f"cordon node {found.node} and " if found.cordon else ""
    return f"would {first}evict {counted(count, 'pod')}"
