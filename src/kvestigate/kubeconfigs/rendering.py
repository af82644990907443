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


def analysis_blocks(found: Analysis) -> Sequence[Block]:
    return [
        text(", ".join(found.files), Tone.STRONG),
        _contexts(found),
        *_findings(found.findings),
    ]


def _contexts(found: Analysis) -> Table:
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
            Cell(f"{it.name} (current)", Tone.STRONG) if it.current else it.name,
            it.server or Cell("(none)", Tone.BAD),
            it.user or "-",
            it.authentication,
            it.expires or "-",
            it.cluster or "-",
            it.namespace or "-",
        ]
        for it in found.contexts
    ]
    return Table(columns, rows, empty="no contexts")


def _findings(findings: Sequence[Finding]) -> list[Block]:
    if not findings:
        return [text("no problems found", Tone.GOOD)]
    counts = tally(it.severity for it in findings)
    blocks: list[Block] = [text(counts, Tone.STRONG)]
    for it in findings:
        place = "" if it.where == it.subject else f" ({it.where})"
        lines = [f"{it.severity.value.upper()} {it.subject}: {it.evidence}{place}"]
        lines.append(f"    why: {it.why}")
        if it.command:
            lines.append(f"    try: {it.command}")
        blocks.append(text("\n".join(lines), it.severity.tone))
    return blocks


def verification_blocks(found: Verification) -> Sequence[Block]:
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
    blocks: list[Block] = [Table(columns, [_row(it) for it in found.checks])]
    for it in found.checks:
        if it.problem:
            said = f"{it.context}: {one_line(it.problem)}"
            words = f"{said}\n  {it.hint}" if it.hint else said
            blocks.append(text(words, _tone(it)))
    skewed = [it.context for it in found.checks if _is_skewed(it)]
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


def difference_blocks(found: Difference) -> Sequence[Block]:
    if not found:
        return [text("no differences", Tone.GOOD)]
    columns = (
        Column("entry"),
        Column("change"),
        Column("field"),
        Column("before"),
        Column("after"),
    )
    return [Table(columns, [row for it in found.entries for row in _rows(it)])]


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


def conversion_blocks(found: Conversion) -> Sequence[Block]:
    if not found.outputs:
        return [text("nothing to change")]
    blocks: list[Block] = list(difference_blocks(found.difference)) if found.difference else []
    blocks += [text(f"note: {note}", Tone.WARN) for note in found.notes]
    rows: list[list[str | Cell]] = [[it.path, it.backup or "-"] for it in found.outputs]
    heading = "written" if found.applied else "would be written"
    blocks.append(Table((Column(heading), Column("the old file is kept as")), rows))
    if not found.applied:
        blocks.append(text("nothing was written; --apply writes the files", Tone.DIM))
    return blocks
