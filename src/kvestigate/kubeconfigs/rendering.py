"""Analyses, verifications, conversions and differences as blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.kubeconfigs.convert import Conversion
from kvestigate.kubeconfigs.difference import ADDED, REMOVED, Difference, FieldChange
from kvestigate.kubeconfigs.model import Analysis, ContextFacts, Finding
from kvestigate.kubeconfigs.verify import DENIED, SKEWED, WORKS, Check, Verification
from kvestigate.render.blocks import Block, Cell, Field, Table, Tone, one_line, table, text
from kvestigate.render.human import milliseconds
from kvestigate.render.severity import tally


def analysis_blocks(analysis: Analysis) -> Sequence[Block]:
    return [
        text(", ".join(analysis.files), Tone.STRONG),
        _contexts(analysis),
        *_findings(analysis.findings),
    ]


def _contexts(analysis: Analysis) -> Table:
    return table(
        analysis.contexts,
        Field("context", _named),
        Field("server", lambda context: context.server or Cell("(none)", Tone.BAD)),
        Field("user", lambda context: context.user or "-"),
        Field("logs in with", lambda context: context.authentication),
        Field("expires", lambda context: context.expires or "-"),
        Field("cluster", lambda context: context.cluster or "-", wide=True),
        Field("namespace", lambda context: context.namespace or "-", wide=True),
        empty="no contexts",
    )


def _named(context: ContextFacts) -> str | Cell:
    return Cell(f"{context.name} (current)", Tone.STRONG) if context.current else context.name


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
    checks = table(
        verification.checks,
        Field("context", lambda check: check.context),
        Field("state", lambda check: Cell(check.state, _tone(check))),
        Field("server", lambda check: check.server or "-"),
        Field("version", lambda check: check.version or "-"),
        Field("server sees", lambda check: check.username or "-"),
        Field("tls", _tls),
        Field("answer", _seconds, number=True),
        Field("clock", _clock, number=True),
        Field("groups", lambda check: ", ".join(check.groups) or "-", wide=True),
    )
    blocks: list[Block] = [checks]
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


def _tls(check: Check) -> Cell:
    weak = check.tls in ("none", "not verified")
    return Cell(check.tls or "-", Tone.WARN if weak else Tone.PLAIN)


def _seconds(check: Check) -> str:
    return "-" if check.seconds is None else milliseconds(check.seconds)


def _tone(check: Check) -> Tone:
    return {WORKS: Tone.GOOD, DENIED: Tone.WARN}.get(check.state, Tone.BAD)


def _is_skewed(check: Check) -> bool:
    return check.skew is not None and abs(check.skew) > SKEWED


def _clock(check: Check) -> str | Cell:
    if check.skew is None:
        return "-"
    return Cell(f"{check.skew:+.0f} s", Tone.WARN) if _is_skewed(check) else "ok"


def difference_blocks(difference: Difference) -> Sequence[Block]:
    if not difference:
        return [text("no differences", Tone.GOOD)]
    rows = [
        (entry, field)
        for entry in difference.entries
        for field in entry.fields or (FieldChange("-", None, None),)
    ]
    changes = table(
        rows,
        Field("entry", lambda row: f"{row[0].kind} {row[0].name}".strip()),
        Field("change", lambda row: Cell(row[0].what, _TONES.get(row[0].what, Tone.WARN))),
        Field("field", lambda row: row[1].path),
        Field("before", lambda row: _value(row[1].before)),
        Field("after", lambda row: _value(row[1].after)),
    )
    return [changes]


_TONES = {ADDED: Tone.GOOD, REMOVED: Tone.BAD}


def _value(value: str | None) -> str:
    return "-" if value is None else one_line(value)


def conversion_blocks(conversion: Conversion) -> Sequence[Block]:
    if not conversion.outputs:
        return [text("nothing to change")]
    blocks: list[Block] = (
        list(difference_blocks(conversion.difference)) if conversion.difference else []
    )
    blocks += [text(f"note: {note}", Tone.WARN) for note in conversion.notes]
    outputs = table(
        conversion.outputs,
        Field("written" if conversion.applied else "would be written", lambda made: made.path),
        Field("the old file is kept as", lambda made: made.backup or "-"),
    )
    blocks.append(outputs)
    if not conversion.applied:
        blocks.append(text("nothing was written; --apply writes the files", Tone.DIM))
    return blocks
