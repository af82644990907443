"""`report list` and `report run`: one report on its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.client.named import require_namespace
from kvestigate.operation import NAMESPACE, check_namespace, param
from kvestigate.reports.registry import REPORTS, find
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.gaps import Gap
from kvestigate.snapshot.price_files import HELP, load_prices
from kvestigate.snapshot.prices import DEFAULT, Prices
from kvestigate.snapshot.source import Progress

SCHEMA = "kvestigate.report/v1"


@dataclass(frozen=True, slots=True)
class RunOptions:
    name: Annotated[str, param("One of the names that `report list` shows.", argument=True)]
    namespace: Annotated[str, NAMESPACE] = ""
    """Read only this namespace and objects without a namespace; empty: all namespaces."""
    prices: (
        Annotated[Prices, param(HELP, metavar="FILE", parse=load_prices, operator_only=True)] | None
    ) = None

    def __post_init__(self) -> None:
        check_namespace(self.namespace)
        find(self.name)  # a mistyped name fails before a cluster is read


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportResult:
    schema: str = SCHEMA
    captured_at: datetime
    """UTC."""
    server: str
    namespace: str = ""
    """The namespace that was read; empty: all."""
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
        snapshot = replace(snapshot, prices=options.prices or DEFAULT)
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
    """`report list` has no options."""


@dataclass(frozen=True, slots=True)
class ReportInfo:
    name: str
    summary: str
    needs: tuple[str, ...]
    """The sources that the report reads: `pods`, `/metrics`."""


@dataclass(frozen=True, slots=True)
class ReportNames:
    reports: tuple[ReportInfo, ...]


def names() -> ReportNames:
    return ReportNames(
        tuple(
            ReportInfo(report.name, report.summary, tuple(source.name for source in report.needs))
            for report in REPORTS
        )
    )
