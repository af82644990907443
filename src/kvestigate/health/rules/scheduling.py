"""Pods that no scheduler has placed, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Fault, Subject
from kvestigate.health.placement import Placement
from kvestigate.health.pods import describe, is_seen_by_kubelet, quoted, sentence, since, subject
from kvestigate.health.references import CLAIM, missing
from kvestigate.health.rule import rule
from kvestigate.kube.unschedulable import in_plain_words, verdict
from kvestigate.kube.views.meta import Condition
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import is_ready
from kvestigate.snapshot.pods import Pod

DEFAULT = "default-scheduler"
_LEASE = "kube-scheduler"
_UNNOTICED = timedelta(seconds=30)
"""A scheduler that runs has looked at a new pod long before."""
_SILENT = timedelta(minutes=1)
"""A lease is renewed every few seconds."""
_OWN_TROUBLE = ("node.kubernetes.io/", "node(s) were unschedulable", "cloudprovider")
"""Reasons that nodes have themselves, whatever the pod wants."""
_STAYS = "The pod stays Pending until a node fits."


@rule(
    "pending",
    "A pod is unschedulable.",
    listings.PODS,
    uses=(listings.NODES, listings.CLAIMS, listings.VOLUMES, listings.LEASES, listings.EVENTS),
)
def pending(cluster: Cluster) -> Iterator[Fault]:
    placement = Placement(cluster)
    heard = _schedulers_at_work(cluster)
    for pod in cluster.pods:
        if pod.spec.node_name or pod.metadata.deletion_timestamp or is_seen_by_kubelet(pod):
            continue
        judged = condition(pod.status.conditions, "PodScheduled")
        if judged is None or (not judged.message and judged.reason != "SchedulingGated"):
            yield from _unnoticed(cluster, pod, heard)
        elif judged.reason == "SchedulingGated":
            yield _gated(pod, judged)
        else:
            yield _unschedulable(cluster, placement, pod, judged)


def _gated(pod: Pod, judged: Condition) -> Fault:
    gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    begun = judged.last_transition_time or pod.metadata.creation_timestamp
    return Fault(
        severity=Severity.WARNING,
        subject=subject(pod),
        evidence=f"Scheduling gate {gates or '(unknown)'} holds the pod back{since(begun)}; "
        "the controller that set the gate must remove it.",
        why="The scheduler does not look at a pod with a scheduling gate.",
        command=describe(pod),
        since=begun,
        alike=f"gate {gates}",
    )


def _unschedulable(cluster: Cluster, placement: Placement, pod: Pod, judged: Condition) -> Fault:
    message = quoted(judged.message)
    words = in_plain_words(judged.reason, message)
    details = " ".join(placement.details(pod, message))
    shortage, scattered = placement.shortage(pod, message)
    begun = judged.last_transition_time or pod.metadata.creation_timestamp
    causes = (*_claims(cluster, pod, message), *_nodes(cluster, message))
    return Fault(
        severity=Severity.CRITICAL,
        subject=subject(pod),
        evidence=f"{words[:1].upper()}{sentence(words)[1:]}"
        + (f" {details}" if details else "")
        + (f" Pending{since(begun)}." if begun else ""),
        why=shortage or _why(message),
        command="kvestigate optimize plan --live" if scattered else describe(pod),
        since=begun,
        causes=causes,
        alike=_kind_of(message),
    )


def _kind_of(message: str) -> str:
    """What is the same for replicas: the reasons without their counts."""
    parsed = verdict(message)
    return " ".join(sorted(words for _, words in parsed.reasons)) if parsed else message


def _why(message: str) -> str:
    parsed = verdict(message)
    reasons = " ".join(words for _, words in parsed.reasons) if parsed else message
    if "persistentvolumeclaim" in reasons.lower():
        return "The pod stays Pending until its PersistentVolumeClaim is bound."
    if "resourceclaim" in reasons.lower() or "allocate all claims" in reasons:
        return "The pod stays Pending until its ResourceClaims can be allocated."
    return _STAYS


def _claims(cluster: Cluster, pod: Pod, message: str) -> Iterator[Subject]:
    """The claims that the pod waits for."""
    lowered = message.lower()
    if "claim" not in lowered and "persistent volume" not in lowered:
        return
    namespace = pod.metadata.namespace
    for reference in missing(cluster, pod.spec, namespace):
        if "Claim" in reference.subject.kind:
            yield reference.subject
    for volume in pod.spec.volumes:
        name = ""
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.metadata.name}-{volume.name}"
        claim = cluster.find(listings.CLAIMS, name, namespace) if name else None
        if claim is not None and claim.status.phase != "Bound":
            yield Subject(CLAIM, name, namespace)


def _nodes(cluster: Cluster, message: str) -> Iterator[Subject]:
    """The nodes with problems of their own, if only these keep the pod away."""
    parsed = verdict(message)
    if parsed is None or not parsed.reasons:
        return
    if all(any(own in words for own in _OWN_TROUBLE) for _, words in parsed.reasons) or (
        all("untolerated taint" in words for _, words in parsed.reasons)
        and not any(is_ready(node) for node in cluster.of(listings.NODES))
    ):
        for node in cluster.of(listings.NODES):
            if node.spec.unschedulable or not is_ready(node):
                yield Subject("Node", node.metadata.name)


# Pods that no scheduler has looked at


def _schedulers_at_work(cluster: Cluster) -> set[str]:
    """The schedulers, beside the default one, that have placed or judged a pod that is there."""
    return {
        pod.spec.scheduler_name
        for pod in cluster.pods
        if pod.spec.scheduler_name not in ("", DEFAULT)
        and (pod.spec.node_name or condition(pod.status.conditions, "PodScheduled") is not None)
    }


def _unnoticed(cluster: Cluster, pod: Pod, heard: set[str]) -> Iterator[Fault]:
    name = pod.spec.scheduler_name or DEFAULT
    begun = pod.metadata.creation_timestamp
    stopped = _stopped(cluster)
    if name != DEFAULT:
        patience = timedelta(minutes=5) if name in heard else _UNNOTICED
        cause = f"scheduler {name} has not looked at the pod; does a scheduler of this name run?"
    elif stopped is not None:
        patience = _UNNOTICED
        cause = f"kube-scheduler is not running: it has not renewed its lease{since(stopped)}"
    else:
        patience = (
            timedelta(minutes=5)
            if cluster.find(listings.LEASES, _LEASE, "kube-system")
            else _SILENT
        )
        cause = "no scheduler has looked at the pod; is kube-scheduler running?"
    if not cluster.settled(begun, patience):
        return
    yield Fault(
        severity=Severity.CRITICAL,
        subject=subject(pod),
        evidence=f"Pending{since(begun)} without a PodScheduled condition: {cause}"
        + (f" (schedulerName: {name})." if name != DEFAULT else "."),
        why="A pod is placed by the scheduler that its schedulerName names, and by no other.",
        command=describe(pod)
        if name != DEFAULT
        else "kubectl -n kube-system get lease kube-scheduler -o yaml",
        since=begun,
        causes=(Subject("Lease", _LEASE, "kube-system"),) if name == DEFAULT else (),
        alike=name,
    )


def _stopped(cluster: Cluster) -> datetime | None:
    """When the scheduler was last heard of, if it holds no lease any more."""
    lease = cluster.find(listings.LEASES, _LEASE, "kube-system")
    renewed = lease.spec.renew_time if lease is not None else None
    return renewed if cluster.settled(renewed, _SILENT) else None


@rule("scheduler-stopped", "kube-scheduler does not run.", listings.LEASES, listings.PODS)
def scheduler_stopped(cluster: Cluster) -> Iterator[Fault]:
    stopped = _stopped(cluster)
    waiting = [
        pod
        for pod in cluster.pods
        if not pod.spec.node_name
        and (pod.spec.scheduler_name or DEFAULT) == DEFAULT
        and condition(pod.status.conditions, "PodScheduled") is None
    ]
    if stopped is not None and waiting:
        yield Fault(
            severity=Severity.CRITICAL,
            subject=Subject("Lease", _LEASE, "kube-system"),
            evidence=f"kube-scheduler has not renewed its lease{since(stopped)}: it is not running."
            f" {len(waiting)} pods wait for it.",
            why="New pods stay Pending.",
            command="kubectl -n kube-system get lease kube-scheduler -o yaml",
            since=stopped,
        )


RULES = (pending, scheduler_stopped)
