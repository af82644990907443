"""`audit`: every report and every rule over one snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.client.logs import LogOptions
from kvestigate.client.named import require_namespace
from kvestigate.errors import KvestigateError
from kvestigate.health.changes import with_changes
from kvestigate.health.cluster import Cluster, subject_of
from kvestigate.health.model import Finding, Profile, key_of
from kvestigate.health.registry import RULES, chosen, findings, incomplete, skipped
from kvestigate.health.rule import Rule
from kvestigate.health.rules.running import crashing_containers
from kvestigate.health.waivers import Accepted, Ignored, Waiver, accepted, annotated
from kvestigate.kube.views.pods import CondensedContainerStatus
from kvestigate.operation import param
from kvestigate.reports.registry import REPORTS
from kvestigate.snapshot import listings
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.gaps import Gap
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.pods import Pod
from kvestigate.snapshot.prices import DEFAULT, Prices
from kvestigate.snapshot.source import Progress, Source

SCHEMA = "kvestigate.audit/v1"


def sources_of(rules: Iterable[Rule]) -> tuple[Source[Any], ...]:
    """What all reports and these rules read, each once."""
    reported = [source for report in REPORTS for source in report.needs]
    checked = [source for rule in rules for source in (*rule.needs, *rule.uses)]
    return tuple(dict.fromkeys([*reported, *checked]))


NEEDS = sources_of(RULES)
"""The sources of all reports and all rules."""

_MOST_LOGS = 20
"""Containers in a crash loop whose last log line is read. More than these have one cause."""
_LOG_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class AuditOptions:
    logs: Annotated[bool, param("Read the last log line of containers in CrashLoopBackOff.")] = True
    namespace: Annotated[
        str,
        param("Only this namespace and objects without a namespace; empty: all namespaces."),
    ] = ""
    profiles: Annotated[
        tuple[Profile, ...],
        param("Only the rules of these, with their advice; empty: all rules, without advice."),
    ] = ()
    every_fault: Annotated[
        bool,
        param("Each fault as a finding of its own, also those that follow from another."),
    ] = False
    prices: (
        Annotated[
            Prices,
            param("What an hour of a GPU costs; default: assumed prices.", operator_only=True),
        ]
        | None
    ) = None


_DEFAULTS = AuditOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    schema: str = SCHEMA
    captured_at: datetime
    """UTC."""
    server: str
    namespace: str = ""
    """The namespace that was read; empty: all."""
    objects: int = 0
    """How many objects were read; 0 in files of versions that did not count them."""
    profiles: tuple[Profile, ...] = ()
    """The profiles that were asked for; empty: all rules, without advice."""
    every_fault: bool = False
    """Whether effects are findings of their own."""
    checks: int = 0
    """How many rules were asked for; 0 in files of versions that did not count them."""
    findings: tuple[Finding, ...]
    accepted: tuple[Accepted, ...] = ()
    """Those of the findings that do not count for `--fail-on`."""
    ignored: tuple[Ignored, ...] = ()
    """Waivers in annotations of objects with findings that do not count, and why."""
    skipped: tuple[str, ...]
    """The rules that were not checked because of `gaps`."""
    incomplete: tuple[str, ...] = ()
    """The rules that were checked without a part of what they need, because of `gaps`. A list
    that stops at its limit makes no rule incomplete: a large cluster always has such lists."""
    reports: dict[str, Any]
    gaps: tuple[Gap, ...]


async def collect(access: Access, options: AuditOptions, progress: Progress | None = None) -> Audit:
    async with connect(access) as api:
        if options.namespace:
            await require_namespace(api, options.namespace)
        needs = sources_of(chosen(options.profiles))
        snapshot = await take(api, needs, progress, namespace=options.namespace)
        snapshot = replace(snapshot, prices=options.prices or DEFAULT)
        if options.logs:
            snapshot = await with_log_lines(api, snapshot)
        audit = examine(snapshot, str(access.server), options)
        custom = {
            subject_of(one.kind, one.metadata)
            for one in Cluster(snapshot).of(listings.CUSTOM_OBJECTS)
        }
        return replace(audit, findings=await with_changes(api, audit.findings, custom))


async def with_log_lines(api: Api, snapshot: Snapshot) -> Snapshot:
    """With the last log line of containers that crash: it often tells the cause."""
    crashing = crashing_containers(Cluster(snapshot))[:_MOST_LOGS]
    return replace(snapshot, last_log_lines=await _last_log_lines(api, crashing))


def examine(snapshot: Snapshot, server: str, options: AuditOptions = _DEFAULTS) -> Audit:
    """Pure: runs every report and every rule that is asked for on the snapshot."""
    rules = chosen(options.profiles)
    found = findings(snapshot, rules, every_fault=options.every_fault)
    cluster = Cluster(snapshot)
    subjects = dict.fromkeys(finding.subject.whole for finding in found)
    noted = [
        entry for subject in subjects for entry in annotated(cluster.annotations(subject), subject)
    ]
    waivers = [entry for entry in noted if isinstance(entry, Waiver)]
    return Audit(
        captured_at=snapshot.captured_at,
        server=server,
        namespace=snapshot.namespace,
        objects=snapshot.objects,
        profiles=options.profiles,
        every_fault=options.every_fault,
        checks=len(rules),
        findings=found,
        accepted=tuple(accepted(found, waivers, (), snapshot.captured_at.date())),
        ignored=tuple(dict.fromkeys(entry for entry in noted if isinstance(entry, Ignored))),
        skipped=skipped(snapshot, rules),
        incomplete=incomplete(snapshot, rules),
        reports={report.name: snapshot.derived(report.collect) for report in REPORTS},
        gaps=snapshot.missing(sources_of(rules)),
    )


def accept(audit: Audit, waivers: Collection[Waiver], baseline: Collection[str]) -> Audit:
    """The audit with what a file of waivers and a baseline accept, too."""
    today = audit.captured_at.date()
    known = {key_of(entry.rule, entry.subject) for entry in audit.accepted}
    others = [finding for finding in audit.findings if finding.key not in known]
    more = accepted(others, waivers, baseline, today)
    return replace(audit, accepted=(*audit.accepted, *more))


def unaccepted(audit: Audit) -> tuple[Finding, ...]:
    """The findings that nobody has accepted."""
    known = {key_of(entry.rule, entry.subject) for entry in audit.accepted}
    return tuple(finding for finding in audit.findings if finding.key not in known)


async def _last_log_lines(
    api: Api, crashing: Sequence[tuple[Pod, CondensedContainerStatus]]
) -> dict[tuple[str, str, str], str]:
    """The field `Snapshot.last_log_lines`; containers without a readable log are left out."""
    keys = [(pod.metadata.namespace, pod.metadata.name, status.name) for pod, status in crashing]
    lines = await asyncio.gather(*(_last_log_line(api, *key) for key in keys))
    return {key: line for key, line in zip(keys, lines, strict=True) if line}


async def _last_log_line(api: Api, namespace: str, pod: str, container: str) -> str:
    """The last line that the container's previous run logged; empty if the log is unreadable."""
    options = LogOptions(container=container, previous=True, tail=1)
    try:
        async with (
            asyncio.timeout(_LOG_SECONDS),
            aclosing(api.logs(pod, options, namespace=namespace)) as lines,
        ):
            return "".join([line.decode("utf-8", "replace") async for line in lines]).strip()
    except (KvestigateError, TimeoutError):
        return ""
