"""The operations of `audit` and `report`, as the catalog lists them."""

from __future__ import annotations

from kvestigate.operation import Context, Effect, Operation, touches_nothing, with_progress
from kvestigate.reports.rendering import names_blocks, report_blocks
from kvestigate.reports.run import (
    ListOptions,
    ReportNames,
    ReportResult,
    RunOptions,
    collect,
    names,
)


async def _names(context: Context, options: ListOptions) -> ReportNames:
    return names()


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
    summary="Run one report: nodes, metrics, gpu, workloads, network or storage.",
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
    json_file=True,
)
