"""Audits as blocks for people. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from kvestigate.health.audit import Audit, unaccepted
from kvestigate.health.model import Finding
from kvestigate.health.registry import RULES
from kvestigate.health.waivers import Accepted
from kvestigate.render.blocks import Block, Cell, Text, Tone, text
from kvestigate.render.blocks import aimed as aimed_command
from kvestigate.render.human import counted
from kvestigate.render.severity import tally
from kvestigate.reports.model import Report, gap_reason
from kvestigate.reports.registry import REPORTS
from kvestigate.reports.rendering import not_read, only, seen
from kvestigate.snapshot.gaps import Cause, Gap
from kvestigate.snapshot.source import Source

_SHOWN = 10
"""How many findings of one rule are shown."""
_EFFECTS = 3
"""How many effects of a finding are shown."""


def audit_blocks(audit: Audit) -> Sequence[Block]:
    """Every report under its heading, what could not be read, and the findings at the end."""
    blocks: list[Block] = [text(f"{audit.server}, {audit.captured_at:%Y-%m-%d %H:%M:%S} UTC")]
    if audit.namespace:
        blocks.append(text(only(audit.namespace), Tone.WARN))
    for report in REPORTS:
        blocks.append(text(f"== {report.name} ==", Tone.STRONG))
        blocks += section(report, audit)
    if audit.gaps:
        blocks += [text("== not read ==", Tone.STRONG), *not_read(audit.gaps)]
    return [*blocks, text("== findings ==", Tone.STRONG), *finding_blocks(audit)]


def section(report: Report, audit: Audit) -> Sequence[Block]:
    """A report of an audit, after those of its sources that could not be read."""
    missing = _gaps_of(report.needs, audit)
    return [*not_read(missing, brief=True), *seen(report, audit.reports[report.name], missing)]


def _gaps_of(needs: Sequence[Source[Any]], audit: Audit) -> list[Gap]:
    needed = {(source.verb, source.name) for source in needs}
    return [gap for gap in audit.gaps if (gap.verb, gap.resource) in needed]


def finding_blocks(audit: Audit) -> Sequence[Block]:
    blocks: list[Block] = [text(line, Tone.WARN) for line in not_checked(audit)]
    blocks += [text(line, Tone.DIM) for line in accepted_lines(audit)]
    findings = unaccepted(audit)
    if not findings:
        tone = Tone.WARN if audit.skipped or audit.incomplete else Tone.GOOD
        return [*blocks, text(no_problems(audit), tone)]
    summary = tally(finding.severity for finding in findings)
    shown = map(_finding, findings) if audit.every_fault else _brief(findings)
    return [*blocks, text(summary), *shown]


def accepted_lines(audit: Audit) -> Sequence[str]:
    """`Accepted: crash-loop, Deployment shop/web (waiver of ada until 2026-12-31: ...).`"""
    accepted = [
        f"Accepted: {entry.rule}, {entry.subject} ({_acceptance(entry)})."
        for entry in audit.accepted
    ]
    return [
        *accepted,
        *(
            f"Not accepted: the waiver in the annotations of {entry.subject} does not count: "
            f"{entry.problem}."
            for entry in audit.ignored
        ),
    ]


def _acceptance(entry: Accepted) -> str:
    if entry.expires is None:
        return "in the baseline"
    return f"waiver of {entry.owner} until {entry.expires}: {entry.reason}"


def not_checked(audit: Audit) -> Sequence[str]:
    """`Not checked: ingress-backend (listing services is forbidden).`, a line for each reason."""
    rules: dict[str, list[str]] = {}
    for rule in RULES:
        if rule.name in audit.skipped:
            reasons = dict.fromkeys(gap_reason(gap) for gap in _gaps_of(rule.needs, audit))
            rules.setdefault("; ".join(reasons), []).append(rule.name)
    lines = [f"Not checked: {', '.join(names)} ({reason})." for reason, names in rules.items()]
    return [*lines, *_checked_in_part(audit)]


def _checked_in_part(audit: Audit) -> Sequence[str]:
    """`Checked in part: custom-resource (listing widgets.example.com fails).`"""
    whole = {(source.verb, source.name) for rule in RULES for source in rule.needs}
    parts = [
        gap
        for gap in audit.gaps
        if (gap.verb, gap.resource) not in whole and gap.cause is not Cause.ABSENT
    ]
    if not audit.incomplete or not parts:
        return []
    reasons = "; ".join(gap_reason(gap) for gap in parts if gap.cause is not Cause.TRUNCATED)
    return [f"Checked in part: {', '.join(audit.incomplete)} ({reasons})."]


def no_problems(audit: Audit) -> str:
    """Says so when some checks could not run."""
    ran = audit.checks - len(audit.skipped)
    if not ran:
        return "No check could run: whether there are problems is unknown."
    which = " in what could be read" if audit.skipped or audit.incomplete else ""
    checks = f"{counted(ran, 'check')} on {counted(audit.objects, 'object')}"
    new = "new " if audit.accepted else ""
    return f"No {new}problems found{which} ({checks})."


def _brief(findings: Sequence[Finding]) -> Iterator[Text]:
    """The first few findings of each rule, and how many more there are."""
    many = Counter(finding.rule for finding in findings)
    shown: Counter[str] = Counter()
    for finding in findings:
        rule = finding.rule
        shown[rule] += 1
        if many[rule] <= _SHOWN + 1 or shown[rule] <= _SHOWN:
            yield _finding(finding)
        elif shown[rule] == many[rule]:
            left = many[rule] - _SHOWN
            yield text(
                f"{left} more {rule} findings: see them with `--all` or `--html PATH`", Tone.DIM
            )


def _finding(finding: Finding) -> Text:
    lines = [
        f"{finding.severity.value.upper()} {finding.subject}: {finding.evidence}",
        f"    why: {finding.why}",
        *(f"    so: {line}" for line in effects(finding)),
        *([f"    changed: {finding.changed}."] if finding.changed is not None else []),
        f"    try: {finding.command}",
    ]
    return Text(Cell("\n".join(lines), finding.severity.tone))


def effects(finding: Finding) -> Sequence[str]:
    """What follows from the finding, a line each; the last line counts what is left out."""
    lines = [f"{effect.subject}: {effect.evidence}" for effect in finding.effects[:_EFFECTS]]
    left = len(finding.effects) - len(lines)
    return [*lines, f"{left} more: see them with --all"] if left else lines


def aimed(audit: Audit, flags: Sequence[str]) -> Audit:
    """The audit with `flags` (such as `--context`) in the commands of its findings."""
    if not flags:
        return audit
    findings = (
        replace(finding, command=aimed_command(finding.command, shlex.join(flags)))
        for finding in audit.findings
    )
    return replace(audit, findings=tuple(findings))
