"""The operations of `audit` and `report`, as the catalog lists them."""

from __future__ import annotations

from kvestigate.operation import Context, Effect, Operation, touches_nothing, with_progress
from kvestigate.reports.audit import Audit, AuditOptions
from kvestigate.reports.audit import collect as audit
from kvestigate.reports.difference import AuditDifference, DiffOptions, blocks, difference
from kvestigate.reports.rendering import audit_blocks, names_blocks, report_blocks
from kvestigate.reports.run import (
    ListOptions,
    ReportNames,
    ReportResult,
    RunOptions,
    collect,
    names,
)


async def _difference(context: Context, options: DiffOptions) -> AuditDifference:
    return difference(options.before, options.after)


async def _names(context: Context, options: ListOptions) -> ReportNames:
    return names()


AUDIT: Operation[AuditOptions, Audit] = Operation(
    name="audit",
    summary="Show every report of the cluster, and the problems found.",
    input=AuditOptions,
    output=Audit,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(audit),
    counts=True,
    render=audit_blocks,
)
DIFF: Operation[DiffOptions, AuditDifference] = Operation(
    name="audit.diff",
    summary="Show what changed between two audits that `audit --json` wrote.",
    input=DiffOptions,
    output=AuditDifference,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=_difference,
    render=blocks,
)
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
