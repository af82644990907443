"""Extensions of the API that do not work: APIServices and definitions. Pure."""

from __future__ import annotations

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
from kvestigate.snapshot.administration import Definition

_NEW = timedelta(minutes=1)
_WORKING = timedelta(minutes=5)


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


RULES = (
    unavailable,
    definitions,
)
