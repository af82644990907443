"""Fan-outs as blocks. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kvestigate.fanout.execute import Executed
from kvestigate.fanout.fetch import Fetched
from kvestigate.fanout.push import Pushed
from kvestigate.fanout.results import (
    Outcome,
    Ran,
    TargetResult,
    Transferred,
    cut,
    failures,
    summary,
)
from kvestigate.fanout.targets import TargetKind, Targets
from kvestigate.render.blocks import Block, Cell, Column, Field, Table, Tone, table, text
from kvestigate.render.human import counted

_LINES = 50
"""Lines of output shown for each target without --full."""


def targets_blocks(targets: Targets) -> Sequence[Block]:
    columns = (
        Column("target"),
        Column("node"),
        Column("namespace"),
        Column("pod"),
        Column("container"),
        Column("runs"),
    )
    nodes = targets.kind is TargetKind.NODES
    rows: list[list[str | Cell]] = [
        [
            target.name,
            target.node,
            target.namespace,
            target.pod,
            target.container,
            " ".join((*target.wrapper, "...")) if nodes else "...",
        ]
        for target in targets.found
    ]
    rows += [
        [target.name, target.node or "-", "-", "-", "-", Cell(target.reason, Tone.BAD)]
        for target in targets.unreachable
    ]
    count = f"{len(targets.found)} of {counted(len(rows), 'target')} can be reached"
    return [Table(columns, rows), text(count, Tone.BAD if targets.unreachable else Tone.GOOD)]


def executed_blocks(done: Executed, *, full: bool = False) -> Sequence[Block]:
    if any(result.outcome is Outcome.PLANNED for result in done.results):
        return _plan(done.results)
    if all(_is_short(result) for result in done.results):
        return [_table(done.results), _verdict(done.results)]
    blocks: list[Block] = []
    for result in done.results:
        blocks.append(text(f"== {result.target.name}: {_ending(result)} ==", _tone(result)))
        blocks += [text(output) for output in _outputs(result, full=full) if output]
    return [*blocks, _verdict(done.results)]


def fetched_blocks(done: Fetched) -> Sequence[Block]:
    if any(result.outcome is Outcome.PLANNED for result in done.results):
        return [_destinations(done.results), text("nothing was fetched", Tone.DIM)]
    return [_transfers(done.results), _verdict(done.results)]


def pushed_blocks(done: Pushed) -> Sequence[Block]:
    if not done.applied:
        count = sum(result.outcome.good for result in done.results)
        plan = f"would write {done.bytes} bytes to {done.path} on {counted(count, 'target')}"
        return [_destinations(done.results), text(plan)]
    return [_transfers(done.results), _verdict(done.results)]


def _plan(results: Sequence[Ran]) -> Sequence[Block]:
    return [
        table(
            results,
            Field("target", lambda row: row.target.name),
            Field("namespace", lambda row: row.target.namespace or "-"),
            Field("pod", lambda row: row.target.pod or "-"),
            Field(
                "would run",
                lambda row: shlex.join(row.argv) if row.outcome.good else Cell(row.error, Tone.BAD),
            ),
        ),
        text("nothing was run", Tone.DIM),
    ]


def _table(results: Sequence[Ran]) -> Table:
    """One line for each target, if every output is one line."""
    return table(
        results,
        Field("target", lambda row: row.target.name),
        Field(
            "exit",
            lambda row: Cell("-" if row.exit_code is None else str(row.exit_code), _tone(row)),
            number=True,
        ),
        Field("seconds", lambda row: f"{row.seconds:.1f}", number=True),
        Field(
            "output",
            lambda row: Cell((row.error or row.stdout or row.stderr).rstrip("\n"), _tone(row)),
        ),
    )


def _transfers(results: Sequence[Transferred]) -> Table:
    return table(
        results,
        Field("target", lambda row: row.target.name),
        Field("outcome", lambda row: Cell(row.outcome.value, _tone(row))),
        Field("files", lambda row: str(row.files), number=True),
        Field("bytes", lambda row: str(row.bytes), number=True),
        Field("seconds", lambda row: f"{row.seconds:.1f}", number=True),
        Field("path", lambda row: row.error or row.path + _skipped(row)),
    )


def _destinations(results: Sequence[Transferred]) -> Table:
    return table(
        results,
        Field("target", lambda row: row.target.name),
        Field("namespace", lambda row: row.target.namespace or "-"),
        Field("pod", lambda row: row.target.pod or "-"),
        Field("path", lambda row: row.path if row.outcome.good else Cell(row.error, Tone.BAD)),
    )


def _skipped(result: Transferred) -> str:
    if not result.skipped:
        return ""
    more = ", ..." if len(result.skipped) > 1 else ""
    named = f"{result.skipped[0]}{more}"
    return f" ({len(result.skipped)} skipped, links out of the tree or special files: {named})"


def _is_short(result: Ran) -> bool:
    outputs = [output for output in (result.stdout, result.stderr, result.error) if output]
    return not outputs or (len(outputs) == 1 and "\n" not in outputs[0].rstrip("\n"))


def _outputs(result: Ran, *, full: bool) -> list[str]:
    outputs = [result.stdout, result.stderr, result.error]
    if full:
        return [output.rstrip("\n") for output in outputs]
    shown = [cut(output, _LINES) for output in outputs]
    if result.truncated:
        shown.append("... the rest was dropped; --full shows all")
    return shown


def _ending(result: Ran) -> str:
    ended = result.outcome.value if result.exit_code is None else f"exit {result.exit_code}"
    return f"{ended}, {result.seconds:.1f} s"


def _verdict(results: Sequence[TargetResult]) -> Block:
    return text(summary(results), Tone.BAD if failures(results) else Tone.GOOD)


def _tone(result: TargetResult) -> Tone:
    return Tone.PLAIN if result.outcome.good else Tone.BAD
