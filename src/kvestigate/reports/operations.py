"""The operations of `audit` and `report`, as the catalog lists them."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.errors import EXIT_DENIED, EXIT_OK
from kvestigate.operation import Context, Effect, Operation, touches_nothing, with_progress
from kvestigate.reports.registry import REPORTS, find
from kvestigate.reports.rendering import names_blocks, report_blocks
from kvestigate.reports.run import (
    ListOptions,
    ReportNames,
    ReportResult,
    RunOptions,
    collect,
    names,
)
from kvestigate.snapshot.gaps import Cause


async def _names(context: Context, options: ListOptions) -> ReportNames:
    return names()


def _denied(result: ReportResult) -> int:
    """Denied, if nothing that the report needs may be read."""
    nothing = len(result.gaps) == len(find(result.name).needs)
    denied = any(gap.cause is Cause.DENIED for gap in result.gaps)
    return EXIT_DENIED if nothing and denied else EXIT_OK


def _any_of(words: Sequence[str]) -> str:
    """`a, b or c`"""
    return f"{', '.join(words[:-1])} or {words[-1]}"


LIST: Operation[ListOptions, ReportNames] = Operation(
    name="report.list",
    summary="List the reports.",
    examples=("kvestigate report list", "kvestigate report list -o wide"),
    input=ListOptions,
    output=ReportNames,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=_names,
    render=names_blocks,
)
RUN: Operation[RunOptions, ReportResult] = Operation(
    name="report.run",
    summary=f"Run one report: {_any_of([report.name for report in REPORTS])}.",
    examples=(
        "kvestigate report run nodes",
        "kvestigate report run gpu --json gpu-now.json",
        "kvestigate report run network -o yaml",
    ),
    input=RunOptions,
    output=ReportResult,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(collect),
    counts=True,
    render=report_blocks,
    exit_code=_denied,
    json_file=True,
)
