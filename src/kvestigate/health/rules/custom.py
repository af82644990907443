"""Custom resources whose controller says that something is wrong, or has stopped. Pure.

Nobody tells what the conditions of a custom resource mean. These rules know the names that most
controllers use, and the words in which reasons say that waiting does not help. A condition of
another name counts only if its reason says plainly that something failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import at, quoted
from kvestigate.health.rule import rule
from kvestigate.kube.views.meta import Condition
from kvestigate.render.human import since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import CustomObject

_NEW = timedelta(minutes=1)
_WORKING = timedelta(minutes=5)
_UNOBSERVED = timedelta(minutes=10)
_GOOD = {
    "Ready", "Available", "Synced", "Healthy", "Programmed", "Accepted", "ResolvedRefs",
    "Reconciled", "ReconcileSuccess", "Valid", "Validated", "Initialized", "Online", "Succeeded",
    "Issued", "Established", "Deployed", "Reachable",
}  # fmt: skip
"""Conditions that are well when they are True."""
_BAD = {
    "Degraded", "Failed", "Stalled", "Unhealthy", "Invalid", "ErrorOccurred", "Blocked",
    "Unavailable", "Broken", "OutOfSync",
}  # fmt: skip
"""Conditions that are well when they are False or absent."""
_BAD_ENDING = ("Error", "Failed", "Failure", "Unsupported", "Stuck")
_DEFINITE = re.compile(
    "fail|error|invalid|notfound|missing|denied|forbidden|unauthorized|timeout|refused|conflict"
    "|exceeded|unreachable|crash|cannot|reject|unsupported|notallowed|doesnotexist|expired"
    "|nomatching|backendnot|refnotpermitted|insufficient|unhealthy|degraded|backoff",
    re.IGNORECASE,
)
"""Reasons that do not go away by waiting."""
_PLAIN_FAILURE = re.compile("(Failed|Error|Exceeded|NotFound|Missing|Denied|Timeout|TimedOut)$")
"""Reasons that mean a failure whatever the condition is called."""
_UNDER_WAY = re.compile(
    "progress|pending|creat|provision|reconcil|waiting|initiali|issuing|starting|install|upgrad"
    "|updat|notready|unknown|deploying|scal|^$",
    re.IGNORECASE,
)
"""Reasons that may go away by waiting."""
_NEVER_ADMITTED = re.compile(
    "maximum capacity|exceeds? (the )?(maximum|nominal)|not found|doesn't exist"
    "|is inactive|is stopped|untolerated taint|doesn't match|misconfigured",
    re.IGNORECASE,
)
"""Messages about a queued workload that no other workload's end changes."""
_BAD_PHASES = {
    "failed", "error", "errored", "degraded", "crashed", "crashloopbackoff", "lost", "unhealthy",
    "partiallyfailed", "failedvalidation", "health_err", "terminationfailed",
}  # fmt: skip
_GOOD_PHASES = {"completed", "succeeded", "complete", "success"}
_RUNS = {"TaskRun", "PipelineRun", "Workflow", "CronWorkflow", "Run", "Build"}
"""Kinds that end: that one of them failed is history."""


@rule(
    "custom-resource",
    "A custom resource says that it is not ready.",
    listings.CUSTOM_OBJECTS,
)
def not_ready(cluster: Cluster) -> Iterator[Fault]:
    children, redone = _children(cluster), _redone(cluster)
    for custom in cluster.of(listings.CUSTOM_OBJECTS):
        meta = custom.metadata
        if custom.suspended or meta.deletion_timestamp is not None or custom.kind in _RUNS:
            continue
        subject = subject_of(custom.kind, meta)
        evidence, since = _complaint(cluster, custom)
        if not evidence or subject in redone:
            continue
        yield Fault(
            severity=Severity.CRITICAL if custom.status.conditions else Severity.WARNING,
            subject=subject,
            evidence=evidence,
            why="Its controller reports that it has not reached what its spec asks for.",
            command=_describe(custom),
            since=since,
            causes=tuple(children.get(subject, ())),
        )


def _describe(custom: CustomObject) -> str:
    meta, group = custom.metadata, custom.api_version.rpartition("/")[0]
    where = f"-n {meta.namespace} " if meta.namespace else ""
    return f"kubectl {where}describe {custom.kind.lower()}.{group} {meta.name}"


def _children(cluster: Cluster) -> dict[Subject, list[Subject]]:
    """Owner -> the custom objects that it made."""
    children: dict[Subject, list[Subject]] = {}
    for custom in cluster.of(listings.CUSTOM_OBJECTS):
        meta = custom.metadata
        for owner in meta.owner_references:
            parent = Subject(owner.kind, owner.name, meta.namespace)
            children.setdefault(parent, []).append(subject_of(custom.kind, meta))
    return children


def _redone(cluster: Cluster) -> set[Subject]:
    """Objects that end, as a Backup does, after which another of their kind ended well."""
    by_kind: dict[tuple[str, str], list[CustomObject]] = {}
    for custom in cluster.of(listings.CUSTOM_OBJECTS):
        if custom.status.phase.casefold() in _GOOD_PHASES | _BAD_PHASES:
            by_kind.setdefault((custom.kind, custom.metadata.namespace), []).append(custom)
    redone: set[Subject] = set()
    for customs in by_kind.values():
        customs.sort(key=_made, reverse=True)
        later = False
        for custom in customs:
            if custom.status.phase.casefold() in _GOOD_PHASES:
                later = True
            elif later:
                redone.add(subject_of(custom.kind, custom.metadata))
    return redone


def _made(custom: CustomObject) -> float:
    born = custom.metadata.creation_timestamp
    return born.timestamp() if born is not None else 0.0


def _complaint(cluster: Cluster, custom: CustomObject) -> tuple[str, datetime | None]:
    """What its status says that is wrong, and since when."""
    born, status = custom.metadata.creation_timestamp, custom.status
    wrong = [
        one
        for one in status.conditions
        if _is_wrong(one) and _lasts(cluster, one, one.last_transition_time or born)
    ]
    if wrong:
        said = "; ".join(dict.fromkeys(_state(one) for one in wrong))
        times = [one.last_transition_time for one in wrong if one.last_transition_time]
        return quoted(f"{said[:1].upper()}{said[1:]}"), min(times, default=None)
    for word in (status.phase, status.health, status.operation):
        if word.casefold() in _BAD_PHASES:
            return quoted(f"{_words(custom)}: {status.message or 'no message'}"), None
    if status.error:
        return quoted(f"Error: {status.error}"), None
    return "", None


def _words(custom: CustomObject) -> str:
    """`phase Failed`, `health Degraded, sync OutOfSync, operation Failed`"""
    status = custom.status
    named = {
        "phase": status.phase,
        "health": status.health,
        "sync": status.sync,
        "operation": status.operation,
    }
    text = ", ".join(f"{name} {word}" for name, word in named.items() if word)
    return f"{text[:1].upper()}{text[1:]}"


def _is_wrong(one: Condition) -> bool:
    if one.type in _BAD or one.type.endswith(_BAD_ENDING):
        # Argo CD writes conditions without a status: that one is there says it.
        return one.status in ("True", "") and (one.status == "True" or bool(one.message))
    if one.type in _GOOD:
        return one.status == "False" or _unknown_for_cause(one)
    if one.type == "QuotaReserved":
        return one.status == "False" and bool(_NEVER_ADMITTED.search(one.message))
    return one.status == "False" and bool(_PLAIN_FAILURE.search(one.reason))


def _unknown_for_cause(one: Condition) -> bool:
    return one.status == "Unknown" and bool(_DEFINITE.search(one.reason))


def _lasts(cluster: Cluster, one: Condition, since: datetime | None) -> bool:
    if one.type not in _GOOD or _DEFINITE.search(one.reason):
        return True
    return cluster.settled(since, _WORKING if _UNDER_WAY.search(one.reason) else _NEW)


def _state(one: Condition) -> str:
    told = ": ".join(part for part in (one.reason, one.message) if part)
    status = f"={one.status}" if one.status else ""
    return f"{one.type}{status}{since_when(one.last_transition_time)}" + (told and f": {told}")


@rule(
    "custom-resource-behind",
    "The controller of a custom resource has not acted on its last change.",
    listings.CUSTOM_OBJECTS,
)
def behind(cluster: Cluster) -> Iterator[Fault]:
    for custom in cluster.of(listings.CUSTOM_OBJECTS):
        meta, seen = custom.metadata, custom.status.observed_generation
        if custom.suspended or meta.deletion_timestamp is not None:
            continue
        changed = meta.last_written
        if 0 < seen < meta.generation and cluster.settled(changed, _UNOBSERVED):
            yield Fault(
                severity=Severity.WARNING,
                subject=subject_of(custom.kind, meta),
                evidence=f"Generation {meta.generation} was written{_at(changed)}, but its "
                f"controller has only seen generation {seen} (status.observedGeneration).",
                why="The controller of this kind does not run or cannot reconcile the object: its "
                "last change has no effect.",
                command=_describe(custom),
                since=changed,
            )


def _at(moment: datetime | None) -> str:
    return f" at {at(moment)}" if moment is not None else ""


@rule(
    "route-parent",
    "A route of the Gateway API names a Gateway that does not exist.",
    listings.CUSTOM_OBJECTS,
)
def routes_without_gateway(cluster: Cluster) -> Iterator[Fault]:
    """Only where all custom resources were read: a Gateway that was not may exist."""
    if cluster.snapshot.parts.get(listings.CUSTOM_OBJECTS):
        return
    objects = cluster.of(listings.CUSTOM_OBJECTS)
    gateways = {
        (one.metadata.namespace, one.metadata.name) for one in objects if one.kind == "Gateway"
    }
    for route in objects:
        meta = route.metadata
        for parent in route.parents:
            where = parent.namespace or meta.namespace
            outside = cluster.snapshot.namespace and where != cluster.snapshot.namespace
            if parent.kind != "Gateway" or (where, parent.name) in gateways or outside:
                continue
            yield Fault(
                severity=Severity.CRITICAL,
                subject=subject_of(route.kind, meta),
                evidence=f"Gateway {where}/{parent.name} (spec.parentRefs) does not exist.",
                why="No gateway serves the route: requests to it fail.",
                command="kubectl get gateways -A",
                since=meta.creation_timestamp,
                alike=parent.name,
            )


RULES = (not_ready, behind, routes_without_gateway)
