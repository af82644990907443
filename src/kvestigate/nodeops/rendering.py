"""Evictions as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.nodeops.evict import (
    BLOCKED,
    FAILED,
    GONE,
    LEAVING,
    UNASKED,
    Departure,
    Evictions,
)
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone, text
from kvestigate.render.human import counted

_TONES = {GONE: Tone.GOOD, BLOCKED: Tone.WARN, LEAVING: Tone.WARN, FAILED: Tone.BAD}
_TITLES = ("namespace", "pod", "outcome", "reason")


def evictions_blocks(evictions: Evictions) -> Sequence[Block]:
    rows: list[list[str | Cell]] = [
        [pod.namespace, pod.name, Cell("refuse", Tone.BAD), f"{pod.reason}; add {pod.flag}"]
        for pod in evictions.refused
    ]
    rows += [
        [pod.namespace, pod.name, _outcome(pod, evictions), _reason(pod)] for pod in evictions.pods
    ]
    rows += [
        [pod.namespace, pod.name, Cell("stay", Tone.DIM), pod.reason] for pod in evictions.skipped
    ]
    table = Table(tuple(map(Column, _TITLES)), rows)
    return [*([table] if rows else []), _summary(evictions)]


def _outcome(pod: Departure, evictions: Evictions) -> Cell:
    if evictions.applied:
        return Cell(pod.outcome, _TONES.get(pod.outcome, Tone.PLAIN))
    return Cell("wait, then evict", Tone.WARN) if pod.blocked else Cell("evict")


def _reason(pod: Departure) -> str:
    return "; ".join(filter(None, (pod.blocked, pod.reason))) or "-"


def _summary(evictions: Evictions) -> Block:
    count = len(evictions.pods)
    if evictions.nothing_to_do:
        return text("no pods to evict")
    if evictions.refused:
        refused = counted(len(evictions.refused), "pod")
        flags = " ".join(evictions.flags)
        return text(f"nothing is evicted while {refused} would be lost: add {flags}", Tone.BAD)
    if evictions.applied:
        first = f"node {evictions.node} is cordoned; " if evictions.cordon else ""
        done = evictions.count(GONE) == count
        words = f"{first}{evictions.count(GONE)} of {count} pods evicted{_left(evictions)}"
        return text(words, Tone.GOOD if done else Tone.BAD)
    first = f"cordon node {evictions.node} and " if evictions.cordon else ""
    return text(f"would {first}evict {counted(count, 'pod')}{_waiting(evictions)}")


def _waiting(evictions: Evictions) -> str:
    blocked = sum(bool(pod.blocked) for pod in evictions.pods)
    return f"; budgets hold back {blocked} of them" if blocked else ""


def _left(evictions: Evictions) -> str:
    words = {
        BLOCKED: "blocked by a budget",
        LEAVING: "still terminating",
        FAILED: "failed",
        UNASKED: "not asked in time",
    }
    parts = [f"{evictions.count(name)} {word}" for name, word in words.items()]
    left = ", ".join(part for part in parts if not part.startswith("0 "))
    return f"; {left}" if left else ""
