"""Apps, their manifests and what became of them, for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvestigate.app.diff import AppDiff, Drift, DriftStatus
from kvestigate.app.model import Action, AppOutcome, Step
from kvestigate.app.spec import AppPhase
from kvestigate.app.status import RecordedStatus
from kvestigate.kube.redaction import names_a_secret
from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Text, Tone, one_line, text
from kvestigate.render.plain import to_text

_SHORT = 12
"""Digits of a digest that people are shown."""
_DONE = {
    Action.CREATE: "created",
    Action.CHANGE: "changed",
    Action.DELETE: "deleted",
    Action.SYNC: "synced",
    Action.START: "started",
    Action.STOP: "stopped",
    Action.FAIL: "failed",
    Action.LEAVE: "going",
    Action.SKIP: "not tried",
}
_WOULD = {Action.FAIL: "would fail", Action.SKIP: "not asked"}
_TONES = {
    Action.UNCHANGED: Tone.DIM,
    Action.CHANGE: Tone.WARN,
    Action.DELETE: Tone.WARN,
    Action.STOP: Tone.WARN,
    Action.LEAVE: Tone.WARN,
    Action.SKIP: Tone.WARN,
    Action.CONFLICT: Tone.BAD,
    Action.FAIL: Tone.BAD,
}
_PHASES = {AppPhase.UP: Tone.GOOD, AppPhase.FAILED: Tone.BAD, AppPhase.APPLYING: Tone.WARN}
_DRIFT = {DriftStatus.IN_SYNC: Tone.GOOD, DriftStatus.NEVER_APPLIED: Tone.DIM}


def format_manifest_summary(manifests: Iterable[Mapping[str, Any]]) -> str:
    """A line an object: what it is, where, and what matters about it."""
    columns = (Column("kind"), Column("namespace"), Column("name"), Column("about"))
    rows = [
        [
            str(manifest["kind"]),
            str(manifest["metadata"].get("namespace", "-")),
            str(manifest["metadata"]["name"]),
            _about(manifest),
        ]
        for manifest in manifests
    ]
    return to_text([Table(columns, rows, empty="no objects")])


def _about(manifest: Mapping[str, Any]) -> str:
    match manifest["kind"]:
        case "ConfigMap":
            return ", ".join(manifest["data"])
        case "Service":
            ports = ", ".join(str(port["port"]) for port in manifest["spec"].get("ports", ()))
            return f"{manifest['spec'].get('type', 'headless')} {ports}".strip()
        case "Job":
            count = manifest["spec"]["completions"]
        case _:
            count = manifest["spec"]["replicas"]
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    return f"{count} x {container['image']}"


def format_apply_results(outcome: AppOutcome) -> str:
    """What was done, or would be, as plain text."""
    return to_text(outcome_blocks(outcome))


def outcome_blocks(outcome: AppOutcome) -> Sequence[Block]:
    """The plan, or what came of it."""
    blocks: list[Block] = [_heading(outcome), *_target(outcome)]
    if outcome.steps:
        blocks.append(_steps(outcome))
    if changed := [step for step in outcome.steps if step.changes]:
        blocks += _changes(changed)
    if not outcome.applied:
        blocks += _scripts(outcome.steps)
    return blocks


def _heading(outcome: AppOutcome) -> Text:
    app = f"App {outcome.namespace}/{outcome.name}"
    if not outcome.steps:
        return text(f"{app}: nothing exists", Tone.DIM)
    if not outcome.changes_anything:
        return text(f"{app}: nothing to do", Tone.GOOD)
    if outcome.failed and not outcome.applied:
        return text(f"{app}: nothing was done, because a step would fail", Tone.BAD)
    counts = [
        f"{count} {_word(action, outcome.applied)}"
        for action in Action
        if (count := outcome.count(action))
    ]
    summary = ", ".join(counts)
    return text(f"{app}: {summary}" if outcome.applied else f"{app}, would do: {summary}")


def _word(action: Action, applied: bool) -> str:
    return (_DONE if applied else _WOULD).get(action, action.value)


def _target(outcome: AppOutcome) -> list[Block]:
    pairs: list[tuple[str, str | Cell]] = [
        ("target", outcome.target.value),
        ("because", "; ".join(outcome.reasons)),
        *(("note", Cell(caveat, Tone.WARN)) for caveat in outcome.caveats),
        ("spec hash", outcome.spec_hash[:_SHORT]),
    ]
    return [Facts(pairs)]


def _steps(outcome: AppOutcome) -> Table:
    rows: list[list[str | Cell]] = [
        [
            step.subject,
            Cell(_word(step.action, outcome.applied), _TONES.get(step.action, Tone.GOOD)),
            one_line(step.reason) or "-",
        ]
        for step in outcome.steps
    ]
    columns = (Column("what"), Column("outcome"), Column("reason"))
    return Table(columns, rows)


def _changes(changed: Iterable[Step]) -> list[Block]:
    columns = (Column("what"), Column("field"), Column("before"), Column("after"))
    rows: list[list[str | Cell]] = [
        [step.subject, change.path, *(_side(side) for side in (change.before, change.after))]
        for step in changed
        for change in step.changes
    ]
    return [text("Changes", Tone.STRONG), Table(columns, rows)]


def _side(value: str | None) -> Cell:
    return Cell("-", Tone.DIM) if value is None else Cell(one_line(value))


def _scripts(steps: Iterable[Step]) -> list[Block]:
    blocks: list[Block] = []
    for step in steps:
        if step.script:
            blocks += [
                text(f"{step.subject}, on the host:", Tone.STRONG),
                text("\n".join(step.script)),
            ]
    return blocks


def diff_blocks(found: AppDiff) -> Sequence[Block]:
    """The App against what was recorded."""
    pairs: list[tuple[str, str | Cell]] = [
        ("app", f"{found.namespace}/{found.name}"),
        ("drift", Cell(found.status.value, _DRIFT.get(found.status, Tone.WARN))),
        ("spec hash", found.spec_hash[:_SHORT]),
    ]
    if found.recorded_hash:
        phase = found.phase.value if found.phase else ""
        pairs.append(("recorded", f"{found.recorded_hash[:_SHORT]} {phase} {found.recorded_at}"))
    blocks: list[Block] = [Facts(pairs)]
    if found.changes:
        columns = (Column("field of the App"), Column("before"), Column("after"))
        rows: list[list[str | Cell]] = [
            [change.path, _side(change.before), _side(change.after)] for change in found.changes
        ]
        blocks.append(Table(columns, rows))
    return blocks


def drift_blocks(found: Drift) -> Sequence[Block]:
    """The record first, then the cluster."""
    return [*diff_blocks(found.app), *outcome_blocks(found.plan)]


def discreet(status: RecordedStatus) -> RecordedStatus:
    """Without the values of variables that are named like secrets."""
    env = {
        name: "(hidden)" if names_a_secret(name) else value
        for name, value in status.app.env.items()
    }
    return replace(status, app=replace(status.app, env=env))


def status_blocks(status: RecordedStatus) -> Sequence[Block]:
    """What was recorded of one App."""
    pairs: list[tuple[str, str | Cell]] = [
        ("app", f"{status.namespace}/{status.name}"),
        ("phase", Cell(status.phase.value, _PHASES.get(status.phase, Tone.DIM))),
        ("target", status.target.value),
        ("spec hash", status.spec_hash[:_SHORT]),
        ("recorded", status.recorded_at),
        ("cluster", f"{status.server} ({status.context})" if status.context else status.server),
    ]
    if status.holder:
        pairs.append(("cyberspace", status.holder))
    if status.message:
        pairs.append(("message", Cell(status.message, Tone.BAD)))
    return [Facts(pairs)]


def list_blocks(statuses: Sequence[RecordedStatus]) -> Sequence[Block]:
    columns = (
        Column("namespace"),
        Column("name"),
        Column("phase"),
        Column("target"),
        Column("spec hash"),
        Column("recorded"),
        Column("cluster"),
    )
    rows: list[list[str | Cell]] = [
        [
            status.namespace,
            status.name,
            Cell(status.phase.value, _PHASES.get(status.phase, Tone.DIM)),
            status.target.value,
            status.spec_hash[:_SHORT],
            status.recorded_at,
            status.context or status.server,
        ]
        for status in statuses
    ]
    return [Table(columns, rows, empty="no App was brought up from here")]
