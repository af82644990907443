"""Namespaces and other objects that cannot be deleted; quotas and limits that refuse pods. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Fault, Profile, Subject
from kvestigate.health.rule import rule
from kvestigate.kube import quantities
from kvestigate.kube.requests import amounts
from kvestigate.kube.views.core import Namespace
from kvestigate.kube.views.meta import Condition
from kvestigate.render.human import since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import LimitRange, ResourceQuota
from kvestigate.snapshot.source import Listing

_FAILURES = (
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
)
"""Conditions that say why a namespace cannot be deleted."""
_REMAINING = ("NamespaceFinalizersRemaining", "NamespaceContentRemaining")
_ENDING = timedelta(minutes=5)
_ENDING_WITH_FINALIZER = timedelta(seconds=30)
"""Finalizers that Kubernetes does not set itself are usually removed within seconds."""
_OWN_FINALIZERS = ("kubernetes.io/", "kubernetes", "foregroundDeletion", "orphan")
_ELSEWHERE = {"Pod", "Namespace", "PersistentVolumeClaim", "PersistentVolume"}
"""Kinds whose deletion other rules look after."""
_NEARLY = 0.9


@rule(
    "namespace-stuck",
    "A namespace cannot be deleted.",
    listings.NAMESPACES,
    uses=[listings.API_SERVICES],
)
def stuck_namespaces(cluster: Cluster) -> Iterator[Fault]:
    held = _held(cluster)
    for namespace in cluster.of(listings.NAMESPACES):
        asked = namespace.metadata.deletion_timestamp
        if asked is None:
            continue
        said = _obstacles(cluster, namespace)
        if not said:
            continue
        yield Fault(
            severity=Severity.CRITICAL,
            subject=Subject("Namespace", namespace.metadata.name),
            evidence=f"Terminating{since_when(asked)}: {' '.join(said)}",
            why="The namespace and what is left in it stay until the cause is removed; nothing new "
            "can be created in it.",
            command=f"kubectl describe namespace {namespace.metadata.name}",
            since=asked,
            causes=(
                *_unavailable(cluster, " ".join(said)),
                *held.get(namespace.metadata.name, ()),
            ),
        )


def _held(cluster: Cluster) -> dict[str, list[Subject]]:
    """Namespace -> the objects in it that were deleted and are still there."""
    held: dict[str, list[Subject]] = {}
    for kind, item in _deleted(cluster):
        meta = item.metadata
        held.setdefault(meta.namespace, []).append(Subject(kind, meta.name, meta.namespace))
    return held


def _obstacles(cluster: Cluster, namespace: Namespace) -> list[str]:
    asked = namespace.metadata.deletion_timestamp
    conditions = namespace.status.conditions
    failed, remaining = _true_ones(conditions, _FAILURES), _true_ones(conditions, _REMAINING)
    foreign = [
        name
        for name in (*namespace.spec.finalizers, *namespace.metadata.finalizers)
        if not name.startswith(_OWN_FINALIZERS)
    ]
    held = [f"Finalizer {', '.join(foreign)} is still set on the namespace."] if foreign else []
    finalized = _true(conditions, "NamespaceFinalizersRemaining")
    waits_for_others = bool(foreign) or (
        finalized is not None and _names_foreign_finalizer(finalized.message)
    )
    patience = _ENDING_WITH_FINALIZER if waits_for_others else _ENDING
    if failed or cluster.settled(asked, patience):
        return [*failed, *remaining, *held] or ["The namespace controller has not said why."]
    return []


def _names_foreign_finalizer(message: str) -> bool:
    """`... has finalizers remaining: example.com/hold in 1 resource instances`"""
    _, _, names = message.rpartition("remaining: ")
    return any(not part.strip().startswith(_OWN_FINALIZERS) for part in names.split(",") if part)


def _true(conditions: tuple[Condition, ...], type: str) -> Condition | None:
    found = condition(conditions, type)
    return found if found is not None and found.status == "True" else None


def _true_ones(conditions: tuple[Condition, ...], types: tuple[str, ...]) -> list[str]:
    found = (_true(conditions, name) for name in types)
    return [f"{one.type}: {one.message or one.reason}" for one in found if one is not None]


def _unavailable(cluster: Cluster, said: str) -> tuple[Subject, ...]:
    """The APIServices that the conditions of a namespace mention."""
    return tuple(
        Subject("APIService", service.metadata.name)
        for service in cluster.of(listings.API_SERVICES)
        if service.spec.service is not None
        and f"{service.spec.group}/{service.spec.version}" in said
    )


@rule("stuck-deletion", "An object was deleted, but a finalizer keeps it.", listings.NAMESPACES)
def stuck_objects(cluster: Cluster) -> Iterator[Fault]:
    """Of every kind that was read, except those that have rules of their own for it."""
    seen: set[Subject] = set()
    for kind, item in _deleted(cluster):
        meta = item.metadata
        foreign = [one for one in meta.finalizers if not one.startswith(_OWN_FINALIZERS)]
        patience = _ENDING_WITH_FINALIZER if foreign else _ENDING
        subject = Subject(kind, meta.name, meta.namespace)
        if subject in seen or not meta.finalizers:
            continue
        if not cluster.settled(meta.deletion_timestamp, patience):
            continue
        seen.add(subject)
        where = f"-n {meta.namespace} " if meta.namespace else ""
        yield Fault(
            severity=Severity.WARNING,
            subject=subject,
            evidence=f"Deleted{since_when(meta.deletion_timestamp)}, but still there: finalizer "
            f"{', '.join(meta.finalizers)} is not removed.",
            why="The program that set the finalizer does not run or cannot clean up; the object "
            "stays until it does.",
            command=f"kubectl {where}get {kind.lower()} {meta.name} -o yaml",
            since=meta.deletion_timestamp,
        )


def _deleted(cluster: Cluster) -> Iterator[tuple[str, Any]]:
    for source, items in cluster.snapshot.listed.items():
        if isinstance(source, Listing) and source.resource.kind not in _ELSEWHERE:
            for item in items:
                if getattr(item.metadata, "deletion_timestamp", None) is not None:
                    yield source.resource.kind, item
    for item in cluster.of(listings.CUSTOM_OBJECTS):
        if item.metadata.deletion_timestamp is not None:
            yield item.kind, item


@rule("quota-full", "A ResourceQuota is used up.", listings.QUOTAS)
def full_quotas(cluster: Cluster) -> Iterator[Fault]:
    """A quota of 0 forbids on purpose: it is full only for what somebody wants."""
    for quota in cluster.of(listings.QUOTAS):
        full = [name for name, share in _shares(quota) if share >= 1]
        if full:
            yield _quota(
                quota,
                Severity.WARNING,
                f"Used up: {_figures(quota, full)}.",
                f"New objects that need {', '.join(full)} are refused in this namespace.",
            )


@rule(
    "quota-nearly-full",
    "A ResourceQuota is used to 90 %.",
    listings.QUOTAS,
    strict=True,
)
def nearly_full_quotas(cluster: Cluster) -> Iterator[Fault]:
    for quota in cluster.of(listings.QUOTAS):
        near = [name for name, share in _shares(quota) if _NEARLY <= share < 1]
        if near:
            yield _quota(
                quota,
                Severity.INFO,
                f"Nearly used up: {_figures(quota, near)}.",
                "The next rollout may need more than is left.",
            )


def _shares(quota: ResourceQuota) -> Iterator[tuple[str, float]]:
    for name, written in sorted(quota.status.hard.items()):
        hard = quantities.as_float(written)
        used = quantities.as_float(quota.status.used.get(name, "0"))
        if hard > 0:
            yield name, used / hard
        elif used > 0:
            yield name, 1.0


def _figures(quota: ResourceQuota, names: list[str]) -> str:
    status = quota.status
    return ", ".join(f"{name} {status.used.get(name)} of {status.hard[name]}" for name in names)


def _quota(quota: ResourceQuota, severity: Severity, evidence: str, why: str) -> Fault:
    meta = quota.metadata
    return Fault(
        severity=severity,
        subject=Subject("ResourceQuota", meta.name, meta.namespace),
        evidence=evidence,
        why=why,
        command=f"kubectl -n {meta.namespace} describe resourcequota {meta.name}",
    )


@rule(
    "limit-range",
    "LimitRanges refuse what they or a quota demand.",
    listings.LIMIT_RANGES,
    uses=[listings.QUOTAS, listings.NODES],
)
def contradictions(cluster: Cluster) -> Iterator[Fault]:
    by_namespace: dict[str, list[LimitRange]] = {}
    for limits in cluster.of(listings.LIMIT_RANGES):
        by_namespace.setdefault(limits.metadata.namespace, []).append(limits)
    for namespace, own in by_namespace.items():
        for limits in own:
            said = [*_against_each_other(limits, own), *_against_quotas(cluster, limits)]
            said += _against_nodes(cluster, limits)
            if said:
                name = limits.metadata.name
                yield Fault(
                    severity=Severity.WARNING,
                    subject=Subject("LimitRange", name, namespace),
                    evidence=" ".join(said),
                    why="Pods that take the default, or any pod at all, cannot be created.",
                    command=f"kubectl -n {namespace} describe limitrange {name}",
                )


def _against_each_other(limits: LimitRange, own: list[LimitRange]) -> Iterator[str]:
    """The API server checks one entry for itself, but not against another."""
    for item in limits.spec.limits:
        for other in own:
            for second in other.spec.limits:
                if second is item or second.type != item.type:
                    continue
                for field in ("min", "default_request", "default"):
                    wanted = amounts(getattr(item, field))
                    for name, most in amounts(second.max).items():
                        if wanted.get(name, 0) > most:
                            yield (
                                f"The {_FIELDS[field]} of {name} {getattr(item, field)[name]} is "
                                f"above the maximum of {second.max[name]} in LimitRange "
                                f"{other.metadata.name}."
                            )


_FIELDS = {
    "min": "minimum",
    "default_request": "default request",
    "default": "default limit",
}


def _against_quotas(cluster: Cluster, limits: LimitRange) -> Iterator[str]:
    """One container with the default or the minimum already needs more than the quota has."""
    for quota in cluster.of(listings.QUOTAS):
        if quota.metadata.namespace != limits.metadata.namespace or quota.spec.scopes:
            continue
        for item in limits.spec.limits:
            if item.type not in ("Container", "Pod"):
                continue
            least = {**item.min, **item.default_request}
            for name, kind, wanted in (
                *((name, "requests.", written) for name, written in least.items()),
                *((name, "limits.", written) for name, written in item.default.items()),
            ):
                keys = (f"{kind}{name}", name) if kind == "requests." else (f"{kind}{name}",)
                for key in keys:
                    hard = quota.status.hard.get(key)
                    if hard and 0 < quantities.as_float(hard) < quantities.as_float(wanted):
                        yield (
                            f"A container gets {key} {wanted} by default, but ResourceQuota "
                            f"{quota.metadata.name} has only {hard}."
                        )


def _against_nodes(cluster: Cluster, limits: LimitRange) -> Iterator[str]:
    nodes = [amounts(node.status.allocatable) for node in cluster.of(listings.NODES)]
    for item in limits.spec.limits if nodes else ():
        if item.type not in ("Container", "Pod"):
            continue
        for name, least in amounts({**item.default_request, **item.min}).items():
            best = max(node.get(name, 0) for node in nodes)
            if best and least > best:
                written = item.min.get(name) or item.default_request[name]
                yield f"Every container requests at least {name} {written}; no node has as much."


@rule(
    "default-namespace",
    "A workload runs in the namespace default.",
    listings.DEPLOYMENTS,
    uses=[listings.STATEFUL_SETS, listings.DAEMON_SETS, listings.CRON_JOBS],
    profile=Profile.SECURITY,
    strict=True,
)
def in_default_namespace(cluster: Cluster) -> Iterator[Fault]:
    for subject, _ in cluster.templates():
        if subject.namespace == "default":
            yield Fault(
                severity=Severity.INFO,
                subject=subject,
                evidence="It runs in the namespace default.",
                why="Rights, quotas and network policies are given by namespace; what is in "
                "default shares them with everything else there (CIS 5.7.4).",
                command=f"kubectl -n default get {subject.kind.lower()} {subject.name} -o yaml",
            )


RULES = (
    stuck_namespaces,
    stuck_objects,
    full_quotas,
    nearly_full_quotas,
    contradictions,
    in_default_namespace,
)
