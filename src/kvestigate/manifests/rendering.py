"""Deployments and deletions as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.client.api import Propagation
from kvestigate.manifests.delete import GONE, LEAVING, Deletion
from kvestigate.manifests.dependents import Dependents
from kvestigate.manifests.model import Deployment, Outcome, Result
from kvestigate.render.blocks import Block, Cell, Field, Tone, one_line, table, text

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
    objects = table(
        deployment.objects,
        Field("kind", lambda result: result.kind),
        Field("namespace", lambda result: result.namespace or "-"),
        Field("name", lambda result: result.name),
        Field(
            "outcome",
            lambda result: Cell(_word(result.outcome, deployment), _TONES[result.outcome]),
        ),
        Field("reason", lambda result: one_line(result.reason) or "-"),
        Field("manifest", lambda result: result.where, wide=True),
    )
    blocks: list[Block] = [text(_heading(deployment)), objects]
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
        f"{count} {_word(outcome, deployment)}"
        for outcome in Outcome
        if (count := deployment.count(outcome))
    ]
    return ", ".join(counts) if deployment.applied else f"would do: {', '.join(counts)}"


def _word(outcome: Outcome, deployment: Deployment) -> str:
    return outcome.value if deployment.applied else _WOULD.get(outcome, outcome.value)


def _changes(changed: Sequence[Result]) -> list[Block]:
    changes = table(
        [(result, change) for result in changed for change in result.changes],
        Field("object", lambda row: f"{row[0].kind}/{row[0].name}"),
        Field("field", lambda row: row[1].path),
        Field("before", lambda row: _side(row[1].before, Tone.BAD)),
        Field("after", lambda row: _side(row[1].after, Tone.GOOD)),
    )
    return [text("Changes", Tone.STRONG), changes]


def _side(value: str | None, tone: Tone) -> Cell:
    return Cell("-", Tone.DIM) if value is None else Cell(one_line(value), tone)


def _conflicts(contested: Sequence[Result]) -> list[Block]:
    heading = "Conflicts: other managers own these fields; --force-conflicts takes them over"
    conflicts = table(
        [(result, conflict) for result in contested for conflict in result.conflicts],
        Field("object", lambda row: f"{row[0].kind}/{row[0].name}"),
        Field("field", lambda row: row[1].path),
        Field("owner", lambda row: row[1].manager),
    )
    return [text(heading, Tone.STRONG), conflicts]


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
        blocks.append(
            table(
                dependents.counts.items(),
                Field(verb, lambda row: row[0]),
                Field("objects", lambda row: str(row[1]), number=True),
            )
        )
    if dependents.unseen:
        names = ", ".join(dependents.unseen)
        blocks.append(text(f"not checked: {names}", Tone.WARN))
    return blocks
