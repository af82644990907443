"""Audits and reports for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from kvestigate.render.blocks import Block, Cell, Column, Table, Text, Tone, text
from kvestigate.render.severity import tally
from kvestigate.reports.audit import Audit
from kvestigate.reports.findings.model import Finding
from kvestigate.reports.model import Report, gap_line
from kvestigate.reports.registry import REPORTS, find
from kvestigate.reports.run import ReportNames, ReportResult
from kvestigate.snapshot.snapshot import Gap

_SHOWN = 10
"""Findings of one rule."""


def audit_blocks(audit: Audit) -> Sequence[Block]:
    """Every report under its heading, what is missing, and the findings at the end."""
    blocks: list[Block] = [text(f"{audit.server}, {audit.captured_at:%Y-%m-%d %H:%M:%S} UTC")]
    if audit.namespace:
        blocks.append(text(only(audit.namespace), Tone.WARN))
    for report in REPORTS:
        blocks.append(text(f"== {report.name} ==", Tone.STRONG))
        blocks += section(report, audit)
    if audit.gaps:
        blocks += [text("== not seen ==", Tone.STRONG), *_not_seen(audit.gaps)]
    return [*blocks, text("== findings ==", Tone.STRONG), *finding_blocks(audit)]


def section(report: Report, audit: Audit) -> Sequence[Block]:
    """A report of an audit, after what could not be read of that which it is made of."""
    needed = {(it.verb, it.name) for it in report.needs}
    missing = [gap for gap in audit.gaps if (gap.verb, gap.resource) in needed]
    return [*_not_seen(missing, brief=True), *_seen(report, audit.reports[report.name], missing)]


def finding_blocks(audit: Audit) -> Sequence[Block]:
    """Never all well while something could not be looked at."""
    blocks: list[Block] = []
    if audit.skipped:
        names = ", ".join(audit.skipped)
        blocks.append(text(f"not checked, for want of what was not seen: {names}", Tone.WARN))
    if audit.findings:
        summary = tally(finding.severity for finding in audit.findings)
        return [*blocks, text(summary), *_brief(audit.findings)]
    if audit.skipped:
        return [*blocks, text("nothing is wrong in what was seen")]
    return [text("nothing is wrong that we know how to look for", Tone.GOOD)]


def _brief(findings: Sequence[Finding]) -> Iterator[Text]:
    """The first few of each rule: what is wrong a hundred times is understood after a few."""
    many = Counter(it.rule for it in findings)
    shown: Counter[str] = Counter()
    for finding in findings:
        rule = finding.rule
        shown[rule] += 1
        if many[rule] <= _SHOWN + 1 or shown[rule] <= _SHOWN:
            yield _finding(finding)
        elif shown[rule] == many[rule]:
            left = many[rule] - _SHOWN
            yield text(f"and {left} more of {rule}: `-o json` and --html have them all", Tone.DIM)


def _finding(finding: Finding) -> Text:
    return Text(
        Cell(
            f"{finding.severity.value.upper()} {finding.subject}: {finding.evidence}\n"
            f"    why: {finding.why}\n"
            f"    try: {finding.command}",
            finding.severity.tone,
        )
    )


def report_blocks(result: ReportResult) -> Sequence[Block]:
    within = [text(only(result.namespace), Tone.WARN)] if result.namespace else []
    seen = _seen(find(result.name), result.report, result.gaps)
    return [*within, *_not_seen(result.gaps), *seen]


def _not_seen(gaps: Sequence[Gap], *, brief: bool = False) -> Sequence[Block]:
    lines = [gap_line(gap, brief=brief) for gap in gaps]
    return [text("\n".join(lines), Tone.WARN)] if lines else []


def _seen(report: Report, result: Any, missing: Sequence[Gap]) -> Sequence[Block]:
    """The report, unless nothing of it was seen: it would only say that there is nothing."""
    if len(missing) == len(report.needs):
        return ()
    blocks = report.render(result)
    return [_doubted(block) for block in blocks] if missing else blocks


def _doubted(block: Block) -> Block:
    """Nothing was seen is not the same as there is nothing."""
    if isinstance(block, Table) and block.empty:
        return replace(block, empty=f"{block.empty} in what was seen")
    return block


def only(namespace: str) -> str:
    """What figures do not say by themselves."""
    return f"only namespace {namespace}: what others request of the nodes is not counted"


def names_blocks(names: ReportNames) -> Sequence[Block]:
    columns = (Column("name"), Column("summary"), Column("needs", wide=True))
    rows = [[it.name, it.summary, ", ".join(it.needs)] for it in names.reports]
    return [Table(columns, rows)]
