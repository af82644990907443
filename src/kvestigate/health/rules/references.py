"""Objects that pods need and that do not exist. Pure.

One finding for each missing object, with everything that needs it: what is missing is the cause,
and pods that cannot start because of it are its effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import since
from kvestigate.health.references import KINDS, Reference, missing
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import Pod

_NAMED = 3
"""How many users of a missing object are named."""
_WHY = {
    "PersistentVolumeClaim": "Pods that mount the claim stay Pending.",
    "ServiceAccount": "Pods with this ServiceAccount are rejected when they are created.",
    "PriorityClass": "Pods with this PriorityClass are rejected when they are created.",
    "RuntimeClass": "Pods with this RuntimeClass are rejected when they are created.",
    "ResourceClaim": "Pods with this claim stay Pending.",
    "ResourceClaimTemplate": "The claims of these pods cannot be created: the pods stay Pending.",
}
_LATENT = "Running pods keep what they have; the next pod that starts fails."
_PULL = "The kubelet pulls without these credentials: images of private registries are refused."


@dataclass(slots=True)
class _Use:
    reference: Reference
    waiting: bool = False
    """Something cannot start now for want of it."""
    since: datetime | None = None


@dataclass(slots=True)
class _Missing:
    needed: bool = False
    by: dict[Subject, _Use] = field(default_factory=dict)

    def add(self, user: Subject, reference: Reference, waiting: bool, at: datetime | None) -> None:
        self.needed = self.needed or reference.needed
        use = self.by.setdefault(user, _Use(reference))
        use.waiting = use.waiting or (waiting and reference.needed)
        if waiting and at is not None:
            use.since = min(use.since or at, at)

    @property
    def waiting(self) -> list[_Use]:
        return [use for use in self.by.values() if use.waiting]


@rule(
    "missing-reference",
    "A pod or a workload refers to an object that does not exist.",
    listings.PODS,
    uses=(
        *KINDS.values(),
        listings.NAMESPACES,
        listings.DEPLOYMENTS,
        listings.REPLICA_SETS,
        listings.REPLICATION_CONTROLLERS,
        listings.STATEFUL_SETS,
        listings.DAEMON_SETS,
        listings.JOBS,
        listings.CRON_JOBS,
    ),
)
def missing_references(cluster: Cluster) -> Iterator[Fault]:
    absent: dict[Subject, _Missing] = {}
    _of_pods(cluster, absent)
    _of_templates(cluster, absent)
    for subject, missed in absent.items():
        yield _fault(subject, missed)


def _of_pods(cluster: Cluster, absent: dict[Subject, _Missing]) -> None:
    known: dict[tuple[str, int], tuple[Reference, ...]] = {}
    for pod in cluster.pods:
        if pod.metadata.deletion_timestamp:
            continue
        # The replicas of a condensed list share their containers if they share their whole spec.
        key = (pod.metadata.namespace, id(pod.spec.containers))
        if key not in known:
            known[key] = missing(cluster, pod.spec, pod.metadata.namespace)
        for reference in known[key]:
            missed = absent.setdefault(reference.subject, _Missing())
            missed.add(
                cluster.workload(pod), reference, _waits(pod), pod.metadata.creation_timestamp
            )


def _of_templates(cluster: Cluster, absent: dict[Subject, _Missing]) -> None:
    for user, spec in cluster.templates():
        if user.kind == "Pod" or _is_going(cluster, user.namespace):
            continue
        for reference in missing(cluster, spec, user.namespace):
            waiting = user.kind != "CronJob" and not any(
                not pod.finished for pod in cluster.pods_of(user)
            )
            absent.setdefault(reference.subject, _Missing()).add(user, reference, waiting, None)


def _is_going(cluster: Cluster, namespace: str) -> bool:
    """A namespace that is deleted loses its objects in any order."""
    known = cluster.find(listings.NAMESPACES, namespace)
    return known is not None and known.metadata.deletion_timestamp is not None


def _waits(pod: Pod) -> bool:
    """Whether a container of the pod has not been started, for whatever reason."""
    return pod.status.phase != "Running" or any(
        status.state.waiting is not None for status in pod.status.all_statuses
    )


def _fault(subject: Subject, missed: _Missing) -> Fault:
    waiting = missed.waiting
    first = min((use.since for use in waiting if use.since is not None), default=None)
    kind = subject.kind
    if not missed.needed:
        why = _PULL
    elif not waiting:
        why = _LATENT
    else:
        why = _WHY.get(kind, f"Containers that use this {kind} cannot start.")
    where = f" -n {subject.namespace}" if subject.namespace else ""
    return Fault(
        severity=Severity.CRITICAL if waiting else Severity.WARNING,
        subject=subject,
        evidence=f"{kind} {subject.name} does not exist. {_users(missed)}"
        + (f" Waiting{since(first)}." if first is not None else ""),
        why=why,
        command=f"kubectl get {kind.lower()}{where}",
        since=first,
    )


def _users(missed: _Missing) -> str:
    """`Deployment shop/api needs it (volume config).`"""
    ordered = sorted(missed.by.items(), key=lambda item: (not item[1].waiting, str(item[0])))
    named = [f"{user} ({use.reference.use})" for user, use in ordered[:_NAMED]]
    more = len(ordered) - len(named)
    if more:
        named.append(f"{more} more")
    text = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f"{text} {'refers' if len(ordered) == 1 else 'refer'} to it."


RULES = (missing_references,)
