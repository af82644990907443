"""Analyses, verifications, conversions and differences as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.kubeconfigs.convert import Conversion
from kvestigate.kubeconfigs.difference import ADDED, REMOVED, Difference, EntryChange
from kvestigate.kubeconfigs.model import Analysis, Finding
from kvestigate.kubeconfigs.verify import DENIED, SKEWED, WORKS, Check, Verification
from kvestigate.render.blocks import Block, Cell, Column, Table, Tone, one_line, text
from kvestigate.render.human import milliseconds
from kvestigate.render.severity import tally


def analysis_blocks(analysis: Analysis) -> Sequence[Block]:
    return [
        text(", ".join(analysis.files), Tone.STRONG),
        _contexts(analysis),
        *_findings(analysis.findings),
    ]


def _contexts(analysis: Analysis) -> Table:
    columns = (
        Column("context"),
        Column("server"),
        Column("user"),
        Column("logs in with"),
        Column("expires"),
        Column("cluster", wide=True),
        Column("namespace", wide=True),
    )
    rows: list[list[str | Cell]] = [
        [
            Cell(f"{context.name} (current)", Tone.STRONG) if context.current else context.name,
            context.server or Cell("(none)", Tone.BAD),
            context.user or "-",
            context.authentication,
            context.expires or "-",
            context.cluster or "-",
            context.namespace or "-",
        ]
        for context in analysis.contexts
    ]
    return Table(columns, rows, empty="no contexts")


def _findings(findings: Sequence[Finding]) -> list[Block]:
    if not findings:
        return [text("no problems found", Tone.GOOD)]
    counts = tally(finding.severity for finding in findings)
    blocks: list[Block] = [text(counts, Tone.STRONG)]
    for finding in findings:
        place = "" if finding.where == finding.subject else f" ({finding.where})"
        lines = [f"{finding.severity.value.upper()} {finding.subject}: {finding.evidence}{place}"]
        lines.append(f"    why: {finding.why}")
        if finding.command:
            lines.append(f"    try: {finding.command}")
        blocks.append(text("\n".join(lines), finding.severity.tone))
    return blocks


def verification_blocks(verification: Verification) -> Sequence[Block]:
    columns = (
        Column("context"),
        Column("state"),
        Column("server"),
        Column("version"),
        Column("server sees"),
        Column("tls"),
        Column("answer", number=True),
        Column("clock", number=True),
        Column("groups", wide=True),
    )
    blocks: list[Block] = [Table(columns, [_row(check) for check in verification.checks])]
    for check in verification.checks:
        if check.problem:
            line = f"{check.context}: {one_line(check.problem)}"
            words = f"{line}\n  {check.hint}" if check.hint else line
            blocks.append(text(words, _tone(check)))
    skewed = [check.context for check in verification.checks if _is_skewed(check)]
    if skewed:
        words = f"the clocks of {', '.join(skewed)} and this machine differ: tokens may be refused"
        blocks.append(text(words, Tone.WARN))
    return blocks


def _row(it: Check) -> list[str | Cell]:
    return [
        it.context,
        Cell(it.state, _tone(it)),
        it.server or "-",
        it.version or "-",
        it.username or "-",
        Cell(it.tls or "-", Tone.WARN if it.tls in ("none", "not verified") else Tone.PLAIN),
        "-" if it.seconds is None else milliseconds(it.seconds),
        _clock(it),
        ", ".join(it.groups) or "-",
    ]


def _tone(it: Check) -> Tone:
    return {WORKS: Tone.GOOD, DENIED: Tone.WARN}.get(it.state, Tone.BAD)


def _is_skewed(it: Check) -> bool:
    return it.skew is not None and abs(it.skew) > SKEWED


def _clock(it: Check) -> str | Cell:
    if it.skew is None:
        return "-"
    return Cell(f"{it.skew:+.0f} s", Tone.WARN) if _is_skewed(it) else "ok"


def difference_blocks(difference: Difference) -> Sequence[Block]:
    if not difference:
        return [text("no differences", Tone.GOOD)]
    columns = (
        Column("entry"),
        Column("change"),
        Column("field"),
        Column("before"),
        Column("after"),
    )
    return [Table(columns, [row for change in difference.entries for row in _rows(change)])]


def _rows(it: EntryChange) -> list[list[str | Cell]]:
    tone = {ADDED: Tone.GOOD, REMOVED: Tone.BAD}.get(it.what, Tone.WARN)
    entry = f"{it.kind} {it.name}".strip()
    if not it.fields:
        return [[entry, Cell(it.what, tone), "-", "-", "-"]]
    return [
        [
            entry,
            Cell(it.what, tone),
            change.path,
            "-" if change.before is None else one_line(change.before),
            "-" if change.after is None else one_line(change.after),
        ]
        for change in it.fields
    ]


def conversion_blocks(conversion: Conversion) -> Sequence[Block]:
    if not conversion.outputs:
        return [text("nothing to change")]
    blocks: list[Block] = (
        list(difference_blocks(conversion.difference)) if conversion.difference else []
    )
    blocks += [text(f"note: {note}", Tone.WARN) for note in conversion.notes]
    rows: list[list[str | Cell]] = [
        [output.path, output.backup or "-"] for output in conversion.outputs
    ]
    heading = "written" if conversion.applied else "would be written"
    blocks.append(Table((Column(heading), Column("the old file is kept as")), rows))
    if not conversion.applied:
        blocks.append(text("nothing was written; --apply writes the files", Tone.DIM))
    return blocks
