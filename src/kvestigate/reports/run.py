"""`report list` and `report run`: one report on its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.client.named import require_namespace
from kvestigate.operation import Effect, Operation
from kvestigate.reports.registry import REPORTS, find
from kvestigate.snapshot.snapshot import Gap, take
from kvestigate.snapshot.source import Progress

SCHEMA = "kvestigate.report/v1"


@dataclass(frozen=True, slots=True)
class RunOptions:
    name: str
    """`gpu`: one of the names that `report list` shows."""
    namespace: str = ""
    """Look only at this one and at what is in none; empty: at everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportResult:
    schema: str = SCHEMA
    captured_at: datetime
    """UTC."""
    server: str
    namespace: str = ""
    """The only one that was looked at; empty: all were."""
    name: str
    report: Any
    gaps: tuple[Gap, ...]


async def collect(
    access: Access, options: RunOptions, progress: Progress | None = None
) -> ReportResult:
    report = find(options.name)
    async with connect(access) as api:
        if options.namespace:
            await require_namespace(api, options.namespace)
        snapshot = await take(api, report.needs, progress, namespace=options.namespace)
    return ReportResult(
        captured_at=snapshot.captured_at,
        server=str(access.server),
        namespace=snapshot.namespace,
        name=report.name,
        report=report.collect(snapshot),
        gaps=snapshot.missing(report.needs),
    )


@dataclass(frozen=True, slots=True)
class ListOptions:
    """There is nothing to choose."""


@dataclass(frozen=True, slots=True)
class Description:
    name: str
    summary: str
    needs: tuple[str, ...]
    """The resources that must be listed for it."""


@dataclass(frozen=True, slots=True)
class ReportNames:
    reports: tuple[Description, ...]


def names() -> ReportNames:
    return ReportNames(
        tuple(
            Description(it.name, it.summary, tuple(needed.name for needed in it.needs))
            for it in REPORTS
        )
    )


async def list_reports(access: Access, options: ListOptions) -> ReportNames:
    """The same whatever the cluster."""
    return names()


LIST = Operation(
    name="report.list",
    summary="List the reports that there are.",
    input=ListOptions,
    output=ReportNames,
    effect=Effect.READ,
    handler=list_reports,
)

RUN = Operation(
    name="report.run",
    summary="Run one report.",
    input=RunOptions,
    output=ReportResult,
    effect=Effect.READ,
    handler=collect,
)
