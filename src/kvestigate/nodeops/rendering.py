"""Evictions as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.nodeops.evict import BLOCKED, FAILED, GONE, LEAVING, Evictions
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone, text
from kvestigate.render.human import counted

_TONES = {GONE: Tone.GOOD, BLOCKED: Tone.WARN, LEAVING: Tone.WARN, FAILED: Tone.BAD}


def evictions_blocks(evictions: Evictions) -> Sequence[Block]:
    columns = (Column("namespace"), Column("pod"), Column("outcome"), Column("reason"))
    rows: list[list[str | Cell]] = [
        [
            pod.namespace,
            pod.name,
            Cell(pod.outcome, _TONES.get(pod.outcome, Tone.PLAIN))
            if evictions.applied
            else "evict",
            pod.reason or "-",
        ]
        for pod in evictions.pods
    ]
    rows += [
        [pod.namespace, pod.name, Cell("skip", Tone.DIM), pod.reason] for pod in evictions.skipped
    ]
    return [text(_heading(evictions)), *([Table(columns, rows)] if rows else [])]


def _heading(evictions: Evictions) -> str:
    count = len(evictions.pods)
    if evictions.nothing_to_do:
        return "no pods to evict"
    if evictions.applied:
        first = f"node {evictions.node} is cordoned; " if evictions.cordon else ""
        return f"{first}{evictions.count(GONE)} of {count} pods evicted"
    first = f"cordon node {evictions.node} and " if evictions.cordon else ""
    return f"would {first}evict {counted(count, 'pod')}"
