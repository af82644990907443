"""Deployments and deletions as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.client.api import Propagation
from kvestigate.manifests.delete import GONE, LEAVING, Deletion
from kvestigate.manifests.dependents import Dependents
from kvestigate.manifests.model import Change, Deployment, Outcome, Result
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone, one_line, text

_TONES = {
    Outcome.CREATED: Tone.GOOD,
    Outcome.CHANGED: Tone.WARN,
    Outcome.UNCHANGED: Tone.DIM,
    Outcome.CONFLICT: Tone.BAD,
    Outcome.FAILED: Tone.BAD,
    Outcome.NOT_TRIED: Tone.WARN,
}
_WOULD = {
    Outcome.CREATED: "create",
    Outcome.CHANGED: "change",
    Outcome.CONFLICT: "conflict",
    Outcome.FAILED: "would fail",
}


def deployment_blocks(found: Deployment) -> Sequence[Block]:
    columns = (
        Column("kind"),
        Column("namespace"),
        Column("name"),
        Column("outcome"),
        Column("reason"),
        Column("manifest", wide=True),
    )
    rows = [_row(it, applied=found.applied) for it in found.objects]
    blocks: list[Block] = [text(_heading(found)), Table(columns, rows)]
    if changed := [it for it in found.objects if it.changes]:
        blocks += _changes(changed)
    if contested := [it for it in found.objects if it.conflicts]:
        blocks += _conflicts(contested)
    return blocks


def _heading(found: Deployment) -> str:
    if not found.applied and found.failed:
        bad = sum(not it.outcome.good for it in found.objects)
        return f"nothing was applied: {bad} of {len(found.objects)} objects would fail"
    counts = [
        f"{count} {outcome.value if found.applied else _WOULD.get(outcome, outcome.value)}"
        for outcome in Outcome
        if (count := found.count(outcome))
    ]
    return ", ".join(counts) if found.applied else f"would do: {', '.join(counts)}"


def _row(it: Result, *, applied: bool) -> list[str | Cell]:
    word = it.outcome.value if applied else _WOULD.get(it.outcome, it.outcome.value)
    return [
        it.kind,
        it.namespace or "-",
        it.name,
        Cell(word, _TONES[it.outcome]),
        one_line(it.reason) or "-",
        it.where,
    ]


def _changes(changed: Sequence[Result]) -> list[Block]:
    columns = (Column("object"), Column("field"), Column("before"), Column("after"))
    rows: list[list[str | Cell]] = [
        [f"{it.kind}/{it.name}", change.path, *_sides(change)]
        for it in changed
        for change in it.changes
    ]
    return [text("Changes", Tone.STRONG), Table(columns, rows)]


def _sides(change: Change) -> tuple[Cell, Cell]:
    before, after = (
        Cell("-", Tone.DIM) if side is None else Cell(one_line(side), tone)
        for side, tone in ((change.before, Tone.BAD), (change.after, Tone.GOOD))
    )
    return before, after


def _conflicts(contested: Sequence[Result]) -> list[Block]:
    rows: list[list[str | Cell]] = [
        [f"{it.kind}/{it.name}", conflict.path, conflict.manager]
        for it in contested
        for conflict in it.conflicts
    ]
    return [
        text(
            "Conflicts: other managers own these fields; --force-conflicts takes them over",
            Tone.STRONG,
        ),
        Table((Column("object"), Column("field"), Column("owner")), rows),
    ]


def deletion_blocks(found: Deletion) -> Sequence[Block]:
    where = f" in namespace {found.namespace}" if found.namespace else ""
    what = f"{found.kind} {found.name}{where}"
    blocks: list[Block] = [_verdict(found, what), *_with_it(found.with_it, found.propagation)]
    if found.finalizers:
        names = ", ".join(found.finalizers)
        blocks.append(text(f"waits for these finalizers: {names}", Tone.WARN))
    return blocks


def _verdict(found: Deletion, what: str) -> Block:
    if found.outcome == GONE:
        return text(f"{what} was deleted", Tone.GOOD)
    if found.outcome == LEAVING:
        return text(f"{what} is being deleted, but still exists", Tone.WARN)
    return text(f"would delete {what}")


def _with_it(found: Dependents, propagation: Propagation) -> list[Block]:
    blocks: list[Block] = []
    if found.counts:
        verb = "loses its owner" if propagation is Propagation.ORPHAN else "goes with it"
        rows: list[list[str | Cell]] = [[name, str(count)] for name, count in found.counts.items()]
        blocks.append(Table((Column(verb), Column("objects", number=True)), rows))
    if found.unseen:
        names = ", ".join(found.unseen)
        blocks.append(text(f"not checked: {names}", Tone.WARN))
    return blocks
