"""Audits and reports as blocks for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kvestigate.render.blocks import Block, Field, Table, Tone, table, text
from kvestigate.reports.model import Report, gap_line
from kvestigate.reports.registry import find
from kvestigate.reports.run import ReportNames, ReportResult
from kvestigate.snapshot.gaps import Gap


def report_blocks(result: ReportResult) -> Sequence[Block]:
    within = [text(only(result.namespace), Tone.WARN)] if result.namespace else []
    shown = seen(find(result.name), result.report, result.gaps)
    return [*within, *not_read(result.gaps), *shown]


def not_read(gaps: Sequence[Gap], *, brief: bool = False) -> Sequence[Block]:
    lines = [gap_line(gap, brief=brief) for gap in gaps]
    return [text("\n".join(lines), Tone.WARN)] if lines else []


def seen(report: Report, result: Any, missing: Sequence[Gap]) -> Sequence[Block]:
    """The report, unless none of its sources was read: it would claim that nothing exists."""
    if len(missing) == len(report.needs):
        return ()
    blocks = report.render(result)
    return [_incomplete(block) for block in blocks] if missing else blocks


def _incomplete(block: Block) -> Block:
    """An empty table of an incomplete report does not mean that nothing exists."""
    if isinstance(block, Table) and block.empty:
        return replace(block, empty=f"{block.empty} in what could be read")
    return block


def only(namespace: str) -> str:
    """The note on an audit or report of one namespace."""
    return f"Only namespace {namespace} was read: requests of other namespaces are not counted."


def names_blocks(names: ReportNames) -> Sequence[Block]:
    return [
        table(
            names.reports,
            Field("name", lambda row: row.name),
            Field("summary", lambda row: row.summary),
            Field("needs", lambda row: ", ".join(row.needs), wide=True),
        )
    ]
