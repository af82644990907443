"""Workloads that cannot create their pods, and what rejects these. Pure.

The API server's answer is in the condition `ReplicaFailure` of ReplicaSets and Deployments, and in
the event `FailedCreate` of every kind of workload.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kvestigate.health.cluster import Cluster, condition, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import quoted, sentence, since
from kvestigate.health.rule import rule
from kvestigate.kube.views.meta import CondensedMetadata
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.source import Listing

_RECENT = timedelta(minutes=40)
"""Controllers retry with pauses of at most 17 minutes: an older event is over."""
_REASONS = ("FailedCreate", "ReplicaSetCreateError")


@dataclass(frozen=True, slots=True)
class _Failure:
    workload: Subject
    message: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class _Cause:
    text: str
    causes: tuple[Subject, ...] = ()
    command: str = ""


@rule(
    "cannot-create-pods",
    "A workload cannot create its pods.",
    listings.REPLICA_SETS,
    uses=(
        listings.DEPLOYMENTS,
        listings.REPLICATION_CONTROLLERS,
        listings.STATEFUL_SETS,
        listings.DAEMON_SETS,
        listings.JOBS,
        listings.CRON_JOBS,
        listings.EVENTS,
        listings.QUOTAS,
        listings.LIMIT_RANGES,
        listings.VALIDATING_WEBHOOKS,
        listings.MUTATING_WEBHOOKS,
    ),
)
def cannot_create_pods(cluster: Cluster) -> Iterator[Fault]:
    reported: set[Subject] = set()
    for failure in (*_by_condition(cluster), *_by_event(cluster)):
        if failure.workload in reported:
            continue
        reported.add(failure.workload)
        cause = _cause(cluster, failure)
        kind, name, namespace = (
            failure.workload.kind,
            failure.workload.name,
            failure.workload.namespace,
        )
        wanted = "Jobs" if kind == "CronJob" else "pods"
        yield Fault(
            severity=Severity.CRITICAL,
            subject=failure.workload,
            evidence=f"{kind} {name} cannot create {wanted}{since(failure.since)}: "
            f"{sentence(cause.text)} The API server says: {sentence(failure.message)}",
            why=f"The missing {wanted} are not created until the cause is removed; the controller "
            "retries.",
            command=cause.command or f"kvestigate describe {kind.lower()} {name} -n {namespace}",
            since=failure.since,
            causes=cause.causes,
        )


def _by_condition(cluster: Cluster) -> Iterator[_Failure]:
    replicas: dict[str, Listing[Any]] = {
        "ReplicaSet": listings.REPLICA_SETS,
        "ReplicationController": listings.REPLICATION_CONTROLLERS,
        "Deployment": listings.DEPLOYMENTS,
    }
    for kind, listing in replicas.items():
        for workload in cluster.of(listing):
            conditions = workload.status.conditions
            failed = condition(conditions, "ReplicaFailure")
            if failed is None or failed.status != "True" or failed.reason == "FailedDelete":
                failed = condition(conditions, "Progressing")
                if failed is None or failed.reason != "ReplicaSetCreateError":
                    continue
            owner = _owner(kind, workload.metadata)
            yield _Failure(owner, quoted(failed.message), failed.last_transition_time)


def _by_event(cluster: Cluster) -> Iterator[_Failure]:
    for kind, (listing, lacking) in _LACKING.items():
        for workload in cluster.of(listing):
            events = cluster.events(subject_of(kind, workload.metadata), *_REASONS)
            if not events or not lacking(workload):
                continue
            newest = events[0]
            if not cluster.settled(newest.last_seen, _RECENT):
                first = newest.first_timestamp or newest.event_time or newest.last_seen
                yield _Failure(_owner(kind, workload.metadata), quoted(newest.message), first)


def _owner(kind: str, meta: CondensedMetadata) -> Subject:
    """The Deployment of a ReplicaSet, the CronJob's Job as it is."""
    for owner in meta.owner_references:
        if owner.controller and kind == "ReplicaSet":
            return Subject(owner.kind, owner.name, meta.namespace)
    return subject_of(kind, meta)


def _too_few(workload: Any) -> bool:
    return bool(workload.status.replicas < workload.spec.replicas)


def _too_few_daemons(daemon_set: Any) -> bool:
    status = daemon_set.status
    present = status.current_number_scheduled  # 0, too, before the first status is written
    return not present or bool(present < status.desired_number_scheduled)


def _not_running(job: Any) -> bool:
    ended = any(
        one.type in ("Complete", "Failed") and one.status == "True" for one in job.status.conditions
    )
    wanted = min(job.spec.parallelism, (job.spec.completions or job.spec.parallelism))
    return not ended and not job.spec.suspend and bool(job.status.active < wanted)


def _active(cron_job: Any) -> bool:
    return not cron_job.spec.suspend


_LACKING: dict[str, tuple[Listing[Any], Callable[[Any], bool]]] = {
    "ReplicaSet": (listings.REPLICA_SETS, _too_few),
    "ReplicationController": (listings.REPLICATION_CONTROLLERS, _too_few),
    "Deployment": (listings.DEPLOYMENTS, _too_few),
    "StatefulSet": (listings.STATEFUL_SETS, _too_few),
    "DaemonSet": (listings.DAEMON_SETS, _too_few_daemons),
    "Job": (listings.JOBS, _not_running),
    "CronJob": (listings.CRON_JOBS, _active),
}
"""Kind -> its objects, and whether one of them has fewer pods than it wants."""


def _cause(cluster: Cluster, failure: _Failure) -> _Cause:
    namespace = failure.workload.namespace
    for pattern, told in _CAUSES:
        match = re.search(pattern, failure.message, re.DOTALL)
        if match:
            return told(cluster, namespace, match)
    return _Cause("the API server rejects the pods")


def _quota(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
    return _Cause(
        f"ResourceQuota {match[1]} is exceeded (requested: {match[2]}, used: {match[3]}, "
        f"limited: {match[4].rstrip('.')})",
        (Subject("ResourceQuota", match[1], namespace),),
        f"kubectl -n {namespace} describe resourcequota/{shlex.quote(match[1])}",
    )


def _unspecified(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
    return _Cause(
        f"ResourceQuota {match[1]} limits {match[2]}, but the pod template does not set "
        f"{match[2]} for every container",
        command=f"kubectl -n {namespace} describe resourcequota/{shlex.quote(match[1])}",
    )


def _limit_range(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
    bound = "min" if match[1] == "minimum" else "max"
    resource = match[2]
    names = [
        limits.metadata.name
        for limits in cluster.of(listings.LIMIT_RANGES)
        if limits.metadata.namespace == namespace
        and any(resource in getattr(item, bound) for item in limits.spec.limits)
    ]
    named = f"LimitRange {', '.join(names)}" if names else "A LimitRange of the namespace"
    return _Cause(
        f"{named} sets a {match[1]} of {match[4]} {resource} for each {match[3]}, and the pod "
        "template breaks it",
        command=f"kubectl -n {namespace} describe limitrange",
    )


def _ratio(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
    names = [
        limits.metadata.name
        for limits in cluster.of(listings.LIMIT_RANGES)
        if limits.metadata.namespace == namespace
    ]
    return _Cause(
        f"LimitRange {', '.join(names)} sets a maximum ratio of limit to request for {match[1]}, "
        "and the pod template breaks it",
        command=f"kubectl -n {namespace} describe limitrange",
    )


def _account(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
    return _Cause(
        f"ServiceAccount {match[1]} does not exist in namespace {namespace}",
        (Subject("ServiceAccount", match[1], namespace),),
        f"kubectl -n {namespace} get serviceaccounts",
    )


def _class(kind: str) -> Callable[[Cluster, str, re.Match[str]], _Cause]:
    return lambda cluster, namespace, match: _Cause(
        f"{kind} {match[1]} does not exist",
        (Subject(kind, match[1]),),
        f"kubectl get {kind.lower()}",
    )


def _pod_security(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
    level = match[1].partition(":")[0]
    return _Cause(
        f"Pod Security of namespace {namespace} enforces the level {level}, and the pod template "
        "violates it",
        command=f"kubectl get namespace {namespace} --show-labels",
    )


def _webhook(outcome: str) -> Callable[[Cluster, str, re.Match[str]], _Cause]:
    def told(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
        causes = tuple(_configurations(cluster, match[1]))
        named = f" ({', '.join(map(str, causes))})" if causes else ""
        return _Cause(
            f"admission webhook {match[1]}{named} {outcome}",
            causes,
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        )

    return told


def _configurations(cluster: Cluster, webhook: str) -> Iterator[Subject]:
    for kind, listing in (
        ("ValidatingWebhookConfiguration", listings.VALIDATING_WEBHOOKS),
        ("MutatingWebhookConfiguration", listings.MUTATING_WEBHOOKS),
    ):
        for configuration in cluster.of(listing):
            if any(one.name == webhook for one in configuration.webhooks):
                yield Subject(kind, configuration.metadata.name)


def _policy(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
    return _Cause(
        f"ValidatingAdmissionPolicy {match[1]} denies the pods",
        (Subject("ValidatingAdmissionPolicy", match[1]),),
        f"kubectl describe validatingadmissionpolicy/{shlex.quote(match[1])}",
    )


def _terminating(cluster: Cluster, namespace: str, match: re.Match[str]) -> _Cause:
    return _Cause(
        f"namespace {namespace} is being deleted",
        (Subject("Namespace", namespace),),
        f"kvestigate describe namespace {namespace}",
    )


def _said(text: str) -> Callable[[Cluster, str, re.Match[str]], _Cause]:
    return lambda cluster, namespace, match: _Cause(text)


_Told = Callable[[Cluster, str, re.Match[str]], _Cause]
_CAUSES: tuple[tuple[str, _Told], ...] = (
    (
        r"exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (\S+)",
        _quota,
    ),
    (r"failed quota: ([^:]+): must specify ([^;]+?)(?: for: .*)?(?:;|$)", _unspecified),
    (r"(maximum|minimum) (\S+) usage per (\w+) is ([^,. ]+)", _limit_range),
    (r"(\S+) max limit to request ratio per \w+", _ratio),
    (r'serviceaccount "([^"]+)" not found', _account),
    (r"no PriorityClass with name (\S+?) was found", _class("PriorityClass")),
    (r'RuntimeClass "([^"]+)" not found', _class("RuntimeClass")),
    (r'runtimeclass\.node\.k8s\.io "([^"]+)" not found', _class("RuntimeClass")),
    (r'violates PodSecurity "([^"]+)"', _pod_security),
    (r'failed calling webhook "([^"]+)"', _webhook("cannot be reached, and it fails closed")),
    (r'admission webhook "([^"]+)" denied', _webhook("denies the pods")),
    (r"ValidatingAdmissionPolicy '([^']+)'.* denied", _policy),
    (r"because it is being terminated", _terminating),
    (
        r"security context constraint",
        _said("no security context constraint allows the pods"),
    ),
    (r'Claim .* failed|persistentvolumeclaims? "', _said("its claim cannot be created")),
    (r"is invalid: ", _said("the pod template is invalid")),
    (r"is forbidden: ", _said("the pods are forbidden")),
)

RULES = (cannot_create_pods,)
