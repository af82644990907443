"""Extensions of the API that do not work: APIServices, definitions, and their objects. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.backends import BACKENDS, backend_of, causes_of, unanswered
from kvestigate.kube.views.meta import Condition
from kvestigate.render.human import since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import CustomObject, Definition

_NEW = timedelta(minutes=1)
_WORKING = timedelta(minutes=5)
_GOOD = {
    "Ready", "Available", "Synced", "Healthy", "Programmed", "Accepted", "ResolvedRefs",
    "Reconciled", "ReconcileSuccess", "Valid", "Validated", "Initialized", "Online", "Succeeded",
    "Issued", "Established", "Deployed", "Reachable",
}  # fmt: skip
"""Conditions that are well when they are True."""
_BAD = {
    "Degraded", "Failed", "Stalled", "Error", "ReconcileError", "ReconcileFailed", "Unhealthy",
    "Invalid", "ErrorOccurred", "Failure", "Blocked", "Unavailable", "InvalidSpecError",
    "ComparisonError", "SyncError", "Broken", "OutOfSync",
}  # fmt: skip
"""Conditions that are well when they are False or absent."""
_DEFINITE = re.compile(
    "fail|error|invalid|notfound|missing|denied|forbidden|unauthorized|timeout|refused|conflict"
    "|exceeded|unreachable|crash|cannot|reject|unsupported|notallowed|doesnotexist|expired"
    "|nomatching|backendnot|refnotpermitted|insufficient|unhealthy|degraded|backoff",
    re.IGNORECASE,
)
"""Reasons that do not go away by waiting."""
_UNDER_WAY = re.compile(
    "progress|pending|creat|provision|reconcil|waiting|initiali|issuing|starting|install|upgrad"
    "|updat|notready|unknown|deploying|scal|^$",
    re.IGNORECASE,
)
"""Reasons that may go away by waiting."""
_BAD_PHASES = {"failed", "error", "degraded", "crashed", "lost", "unhealthy"}
_RUNS = {"TaskRun", "PipelineRun", "Workflow", "CronWorkflow", "Run", "Build"}
"""Kinds that end: that one of them failed is history."""


@rule("api-service", "An aggregated API is not available.", listings.API_SERVICES, uses=BACKENDS)
def unavailable(cluster: Cluster) -> Iterator[Fault]:
    for service in cluster.of(listings.API_SERVICES):
        available = condition(service.status.conditions, "Available")
        backend = service.spec.service
        born = service.metadata.creation_timestamp
        if available is None and (backend is None or not cluster.settled(born, _NEW)):
            continue
        if available is not None and available.status == "True":
            continue
        told = f"{available.reason}: {available.message}" if available else "no condition yet"
        since = available.last_transition_time if available else born
        cause = unanswered(cluster, backend) if backend is not None else ""
        yield Fault(
            severity=Severity.CRITICAL,
            subject=Subject("APIService", service.metadata.name),
            evidence=f"Not available{since_when(since)}: {told}" + (cause and f" ({cause})"),
            why="Requests for this API fail, `kubectl get all` shows errors, and namespaces cannot "
            "be deleted.",
            command=f"kubectl get apiservice {service.metadata.name} -o yaml",
            since=since,
            causes=causes_of(cluster, backend) if backend is not None else (),
        )


@rule(
    "definition",
    "A CustomResourceDefinition does not work.",
    listings.DEFINITIONS,
    uses=BACKENDS,
)
def definitions(cluster: Cluster) -> Iterator[Fault]:
    for definition in cluster.of(listings.DEFINITIONS):
        for severity, evidence, since in _troubles(cluster, definition):
            name = definition.metadata.name
            conversion = definition.spec.conversion.webhook
            backend = backend_of(conversion.client_config) if conversion else None
            yield Fault(
                severity=severity,
                subject=Subject("CustomResourceDefinition", name),
                evidence=evidence,
                why="Objects of this kind cannot be read or written as their users expect.",
                command=f"kubectl describe crd {name}",
                since=since,
                causes=causes_of(cluster, backend) if backend is not None else (),
                alike=evidence,
            )


def _troubles(
    cluster: Cluster, definition: Definition
) -> Iterator[tuple[Severity, str, datetime | None]]:
    conditions = definition.status.conditions
    born = definition.metadata.creation_timestamp
    accepted = condition(conditions, "NamesAccepted")
    established = condition(conditions, "Established")
    if accepted is not None and accepted.status == "False":
        yield Severity.CRITICAL, _said("Its names are not accepted", accepted), born
    elif (established is None or established.status != "True") and cluster.settled(born, _NEW):
        told = _said("Not established", established) if established else "Not established."
        yield Severity.CRITICAL, told, born
    loose = condition(conditions, "NonStructuralSchema")
    if loose is not None and loose.status == "True":
        yield Severity.WARNING, _said("Its schema is not structural", loose), born
    approved = condition(conditions, "KubernetesAPIApprovalPolicyConformant")
    if approved is not None and approved.status == "False":
        yield Severity.WARNING, _said("Its group is protected", approved), born
    ending = condition(conditions, "Terminating")
    if ending is not None and ending.status == "True":
        asked = definition.metadata.deletion_timestamp
        if cluster.settled(asked, _WORKING) or "Failed" in ending.reason:
            yield Severity.CRITICAL, _said("It cannot be deleted", ending), asked
    yield from _conversion(cluster, definition)


def _conversion(
    cluster: Cluster, definition: Definition
) -> Iterator[tuple[Severity, str, datetime | None]]:
    webhook = definition.spec.conversion.webhook
    backend = backend_of(webhook.client_config) if webhook is not None else None
    if definition.spec.conversion.strategy != "Webhook" or backend is None:
        return
    cause = unanswered(cluster, backend)
    if cause:
        versions = [version.name for version in definition.spec.versions if version.served]
        several = len(versions) > 1
        yield (
            Severity.CRITICAL if several else Severity.WARNING,
            f"Its conversion webhook does not answer: {cause}. Objects cannot be converted "
            f"between {', '.join(versions)}.",
            None,
        )


def _said(what: str, one: Condition) -> str:
    return f"{what}{since_when(one.last_transition_time)}: {one.reason}: {one.message}"


@rule(
    "custom-resource",
    "A custom resource says that it is not ready.",
    listings.CUSTOM_OBJECTS,
)
def not_ready(cluster: Cluster) -> Iterator[Fault]:
    children = _children(cluster)
    for custom in cluster.of(listings.CUSTOM_OBJECTS):
        meta = custom.metadata
        if custom.suspended or meta.deletion_timestamp is not None or custom.kind in _RUNS:
            continue
        said, since = _complaint(cluster, custom)
        if not said:
            continue
        ended = not custom.status.conditions
        subject = Subject(custom.kind, meta.name, meta.namespace)
        where = f"-n {meta.namespace} " if meta.namespace else ""
        group = custom.api_version.rpartition("/")[0]
        yield Fault(
            severity=Severity.WARNING if ended else Severity.CRITICAL,
            subject=subject,
            evidence=said,
            why="Its controller reports that it has not reached what its spec asks for.",
            command=f"kubectl {where}describe {custom.kind.lower()}.{group} {meta.name}",
            since=since,
            causes=tuple(children.get(subject, ())),
        )


def _children(cluster: Cluster) -> dict[Subject, list[Subject]]:
    """Owner -> the custom objects that it made."""
    found: dict[Subject, list[Subject]] = {}
    for custom in cluster.of(listings.CUSTOM_OBJECTS):
        meta = custom.metadata
        own = Subject(custom.kind, meta.name, meta.namespace)
        for owner in meta.owner_references:
            parent = Subject(owner.kind, owner.name, meta.namespace)
            found.setdefault(parent, []).append(own)
    return found


def _complaint(cluster: Cluster, custom: CustomObject) -> tuple[str, datetime | None]:
    """What its conditions say that is wrong, and since when."""
    born = custom.metadata.creation_timestamp
    wrong = [
        one
        for one in custom.status.conditions
        if _is_wrong(one) and _lasts(cluster, one, one.last_transition_time or born)
    ]
    if wrong:
        said = "; ".join(dict.fromkeys(_state(one) for one in wrong))
        times = [one.last_transition_time for one in wrong if one.last_transition_time]
        since = min(times, default=None)
        return f"{said[:1].upper()}{said[1:]}", since
    status = custom.status
    if not status.conditions:
        for word in (status.phase, status.health):
            if word.casefold() in _BAD_PHASES:
                return f"{word}: {status.message or 'no message'}", None
    return "", None


def _is_wrong(one: Condition) -> bool:
    if one.type in _BAD:
        return one.status == "True"
    return one.type in _GOOD and (one.status == "False" or _unknown_for_cause(one))


def _unknown_for_cause(one: Condition) -> bool:
    return one.status == "Unknown" and bool(_DEFINITE.search(one.reason))


def _lasts(cluster: Cluster, one: Condition, since: datetime | None) -> bool:
    if one.type in _BAD or _DEFINITE.search(one.reason):
        return True
    return cluster.settled(since, _WORKING if _UNDER_WAY.search(one.reason) else _NEW)


def _state(one: Condition) -> str:
    told = ": ".join(part for part in (one.reason, one.message) if part)
    return f"{one.type}={one.status}{since_when(one.last_transition_time)}" + (told and f": {told}")


RULES = (
    unavailable,
    definitions,
    not_ready,
)
