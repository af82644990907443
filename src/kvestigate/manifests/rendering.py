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


def deployment_blocks(deployment: Deployment) -> Sequence[Block]:
    columns = (
        Column("kind"),
        Column("namespace"),
        Column("name"),
        Column("outcome"),
        Column("reason"),
        Column("manifest", wide=True),
    )
    rows = [_row(result, applied=deployment.applied) for result in deployment.objects]
    blocks: list[Block] = [text(_heading(deployment)), Table(columns, rows)]
    if changed := [result for result in deployment.objects if result.changes]:
        blocks += _changes(changed)
    if contested := [result for result in deployment.objects if result.conflicts]:
        blocks += _conflicts(contested)
    return blocks


def _heading(deployment: Deployment) -> str:
    if not deployment.applied and deployment.failed:
        bad = sum(not result.outcome.good for result in deployment.objects)
        return f"nothing was applied: {bad} of {len(deployment.objects)} objects would fail"
    counts = [
        f"{count} {outcome.value if deployment.applied else _WOULD.get(outcome, outcome.value)}"
        for outcome in Outcome
        if (count := deployment.count(outcome))
    ]
    return ", ".join(counts) if deployment.applied else f"would do: {', '.join(counts)}"


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
        [f"{result.kind}/{result.name}", change.path, *_sides(change)]
        for result in changed
        for change in result.changes
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
        [f"{result.kind}/{result.name}", conflict.path, conflict.manager]
        for result in contested
        for conflict in result.conflicts
    ]
    return [
        text(
            "Conflicts: other managers own these fields; --force-conflicts takes them over",
            Tone.STRONG,
        ),
        Table((Column("object"), Column("field"), Column("owner")), rows),
    ]


def deletion_blocks(deletion: Deletion) -> Sequence[Block]:
    where = f" in namespace {deletion.namespace}" if deletion.namespace else ""
    what = f"{deletion.kind} {deletion.name}{where}"
    blocks: list[Block] = [
        _verdict(deletion, what),
        *_with_it(deletion.with_it, deletion.propagation),
    ]
    if deletion.finalizers:
        names = ", ".join(deletion.finalizers)
        blocks.append(text(f"waits for these finalizers: {names}", Tone.WARN))
    return blocks


def _verdict(deletion: Deletion, what: str) -> Block:
    if deletion.outcome == GONE:
        return text(f"{what} was deleted", Tone.GOOD)
    if deletion.outcome == LEAVING:
        return text(f"{what} is being deleted, but still exists", Tone.WARN)
    return text(f"would delete {what}")


def _with_it(dependents: Dependents, propagation: Propagation) -> list[Block]:
    blocks: list[Block] = []
    if dependents.counts:
        verb = "loses its owner" if propagation is Propagation.ORPHAN else "goes with it"
        rows: list[list[str | Cell]] = [
            [name, str(count)] for name, count in dependents.counts.items()
        ]
        blocks.append(Table((Column(verb), Column("objects", number=True)), rows))
    if dependents.unseen:
        names = ", ".join(dependents.unseen)
        blocks.append(text(f"not checked: {names}", Tone.WARN))
    return blocks
