"""`audit`: every report over one snapshot, and what is wrong."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.client.logs import LogOptions
from kvestigate.client.named import require_namespace
from kvestigate.errors import KvestigateError
from kvestigate.operation import Effect, Operation
from kvestigate.reports.findings.model import Finding
from kvestigate.reports.findings.pods import CRASH_LOOP
from kvestigate.reports.findings.registry import RULES, findings, skipped
from kvestigate.reports.registry import REPORTS
from kvestigate.snapshot.snapshot import Gap, Snapshot, take
from kvestigate.snapshot.source import Progress

SCHEMA = "kvestigate.audit/v1"

NEEDS = tuple(
    dict.fromkeys(
        [
            *(listing for report in REPORTS for listing in report.needs),
            *(listing for rule in RULES for listing in rule.needs),
        ]
    )
)
"""Every collection that some report or rule looks at, once."""

_LAST_WORDS = 20
"""Crash loops whose last log line is fetched: a cluster with more has one cause for them all."""
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class AuditOptions:
    logs: bool = True
    """Fetch the last log line of containers in a crash loop."""
    namespace: str = ""
    """Look only at this one and at what is in none; empty: at everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    schema: str = SCHEMA
    captured_at: datetime
    """UTC."""
    server: str
    namespace: str = ""
    """The only one that was looked at; empty: all were."""
    findings: tuple[Finding, ...]
    skipped: tuple[str, ...]
    """Rules that were not checked, because of the gaps."""
    reports: dict[str, Any]
    gaps: tuple[Gap, ...]


async def collect(access: Access, options: AuditOptions, progress: Progress | None = None) -> Audit:
    async with connect(access) as api:
        if options.namespace:
            await require_namespace(api, options.namespace)
        snapshot = await take(api, NEEDS, progress, namespace=options.namespace)
        audit = examine(snapshot, str(access.server))
        if not options.logs:
            return audit
        return replace(audit, findings=await _with_last_words(api, audit.findings))


def examine(snapshot: Snapshot, server: str) -> Audit:
    """Pure: what a snapshot says."""
    return Audit(
        captured_at=snapshot.captured_at,
        server=server,
        namespace=snapshot.namespace,
        findings=findings(snapshot),
        skipped=skipped(snapshot),
        reports={report.name: snapshot.derived(report.collect) for report in REPORTS},
        gaps=snapshot.missing(NEEDS),
    )


async def _with_last_words(api: Api, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    crashing = [it for it in found if it.rule == CRASH_LOOP][:_LAST_WORDS]
    lines = await asyncio.gather(*(_last_line(api, it) for it in crashing))
    said = {id(it): line for it, line in zip(crashing, lines, strict=True) if line}
    return tuple(
        replace(it, evidence=f"{it.evidence}; last line: {said[id(it)]}") if id(it) in said else it
        for it in found
    )


async def _last_line(api: Api, finding: Finding) -> str:
    """The last line before the latest crash; empty if it cannot be had."""
    subject = finding.subject
    options = LogOptions(container=subject.container, previous=True, tail=1)
    try:
        async with asyncio.timeout(_PATIENCE):
            stream = api.logs(subject.name, options, namespace=subject.namespace)
            async with aclosing(stream) as lines:
                return "".join([line.decode("utf-8", "replace") async for line in lines]).strip()
    except (KvestigateError, TimeoutError):
        return ""


OPERATION = Operation(
    name="audit",
    summary="Run every report, and say what is wrong.",
    input=AuditOptions,
    output=Audit,
    effect=Effect.READ,
    handler=collect,
)
