"""Claims in use: resizing, full, shared by pods that cannot share, or not used at all. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster, condition, subject_of
from kvestigate.health.model import Fault, Profile
from kvestigate.health.rule import rule
from kvestigate.health.rules.claims import KIND, bytes_of
from kvestigate.kube.selectors import EVERYTHING
from kvestigate.kube.views.storage import PersistentVolumeClaim
from kvestigate.render.human import listed, since_when, size
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import PodSpec

_ENDING = timedelta(minutes=2)
_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}


def _fault(
    claim: PersistentVolumeClaim,
    evidence: str,
    why: str,
    severity: Severity,
    begin: datetime | None = None,
) -> Fault:
    meta = claim.metadata
    return Fault(
        severity=severity,
        subject=subject_of(KIND, meta),
        evidence=evidence,
        why=why,
        command=f"kubectl -n {meta.namespace} describe pvc {meta.name}",
        since=begin,
    )


@rule(
    "claim-resize",
    "A PersistentVolumeClaim cannot grow.",
    listings.CLAIMS,
    uses=(listings.EVENTS,),
)
def resizing(cluster: Cluster) -> Iterator[Fault]:
    for claim in cluster.of(listings.CLAIMS):
        wanted = bytes_of(claim.spec.resources.requests)
        has = bytes_of(claim.status.capacity)
        if claim.status.phase != "Bound" or not has or has >= wanted:
            continue
        problem, definite, begin = _resize_problem(cluster, claim)
        if not definite and not cluster.settled(begin):
            continue
        yield _fault(
            claim,
            f"The volume has {size(has)}, and the claim requests {size(wanted)}"
            f"{since_when(begin)}: {problem}.",
            "The claim stays at its old size.",
            Severity.WARNING,
            begin,
        )


def _resize_problem(
    cluster: Cluster, claim: PersistentVolumeClaim
) -> tuple[str, bool, datetime | None]:
    """What is told, whether it is an error, and since when."""
    conditions = claim.status.conditions
    for told in conditions:
        if told.type in ("ControllerResizeError", "NodeResizeError") and told.status == "True":
            return f"{told.type}: {told.message}", True, told.last_transition_time
    for status in claim.status.allocated_resource_statuses.values():
        if status.endswith("Infeasible"):
            return f"the resize is infeasible ({status})", True, None
    failed = cluster.events(
        subject_of(KIND, claim.metadata), "VolumeResizeFailed", "FileSystemResizeFailed"
    )
    if failed:
        return f"{failed[0].reason}: {failed[0].message}", True, failed[0].first_timestamp
    pending = condition(conditions, "FileSystemResizePending")
    if pending is not None and pending.status == "True":
        users = cluster.mounting(claim.metadata.name, claim.metadata.namespace)
        waits = "a pod must mount it first" if not users else "its pods must be restarted"
        return (
            f"the file system is not resized yet (FileSystemResizePending): {waits}",
            not users,
            pending.last_transition_time,
        )
    progress = condition(conditions, "Resizing")
    begin = progress.last_transition_time if progress is not None else None
    return "the resize is not done", False, begin or claim.metadata.creation_timestamp


@rule(
    "claim-on-two-nodes",
    "Pods on different nodes use a volume that only one node can mount.",
    listings.CLAIMS,
    listings.PODS,
    uses=(listings.EVENTS,),
)
def on_two_nodes(cluster: Cluster) -> Iterator[Fault]:
    """Only if a pod waits for the volume: a volume on every node's own disk may be there twice."""
    for claim in cluster.of(listings.CLAIMS):
        meta = claim.metadata
        if claim.status.phase != "Bound" or not set(claim.status.access_modes) <= _ONE_NODE:
            continue
        pods = cluster.mounting(meta.name, meta.namespace)
        nodes = {pod.spec.node_name for pod in pods} - {""}
        if len(nodes) < 2:
            continue
        waiting = [pod for pod in pods if pod.status.phase == "Pending" and pod.spec.node_name]
        for pod in waiting:
            events = cluster.events(
                subject_of("Pod", pod.metadata), "FailedAttachVolume", "FailedMount"
            )
            if not events and not cluster.settled(pod.metadata.creation_timestamp):
                continue
            holders = sorted(
                f"{one.metadata.name} on {one.spec.node_name}"
                for one in pods
                if one.spec.node_name != pod.spec.node_name
            )
            quoted = f" ({events[0].reason}: {events[0].message})" if events else ""
            yield _fault(
                claim,
                f"Pod {pod.metadata.name} on node {pod.spec.node_name} waits for the volume, but "
                f"it is {'/'.join(claim.status.access_modes)} and pod {listed(holders)} uses it"
                f"{quoted}.",
                "The volume can be attached to one node at a time: the pod cannot start.",
                Severity.CRITICAL,
                pod.metadata.creation_timestamp,
            )
            break


@rule(
    "claim-still-used",
    "A PersistentVolumeClaim was deleted, but pods still mount it.",
    listings.CLAIMS,
    listings.PODS,
)
def still_used(cluster: Cluster) -> Iterator[Fault]:
    for claim in cluster.of(listings.CLAIMS):
        meta = claim.metadata
        deleted = meta.deletion_timestamp
        if not meta.finalizers or not cluster.settled(deleted, _ENDING):
            continue
        users = [pod.metadata.name for pod in cluster.mounting(meta.name, meta.namespace)]
        keeps = (
            f"pod {listed(users)} still mounts it"
            if users
            else f"the finalizer {', '.join(meta.finalizers)} is not removed"
        )
        yield _fault(
            claim,
            f"Terminating{since_when(deleted)}: {keeps}.",
            "New pods that mount the claim stay Pending; its data are deleted when its last pod "
            "ends.",
            Severity.WARNING,
            deleted,
        )


@rule(
    "claim-unused",
    "No pod mounts a PersistentVolumeClaim.",
    listings.CLAIMS,
    listings.PODS,
    profile=Profile.COST,
    strict=True,
    uses=(listings.STATEFUL_SETS, listings.DEPLOYMENTS, listings.CRON_JOBS),
)
def unused_claims(cluster: Cluster) -> Iterator[Fault]:
    wanted = _wanted_by_templates(cluster)
    for claim in cluster.of(listings.CLAIMS):
        meta = claim.metadata
        if claim.status.phase != "Bound" or not cluster.settled(meta.creation_timestamp):
            continue
        if (
            not cluster.mounting(meta.name, meta.namespace)
            and (meta.namespace, meta.name) not in wanted
        ):
            held = size(bytes_of(claim.status.capacity))
            yield _fault(
                claim,
                f"No pod and no workload mounts the claim; it keeps {held}.",
                "The volume costs storage that nobody uses.",
                Severity.INFO,
            )


def _wanted_by_templates(cluster: Cluster) -> set[tuple[str, str]]:
    return {
        (namespace, volume.persistent_volume_claim.claim_name)
        for namespace, spec in _specs(cluster)
        for volume in spec.volumes
        if volume.persistent_volume_claim is not None
    }


def _specs(cluster: Cluster) -> Iterator[tuple[str, PodSpec]]:
    """The pod specs of all workloads, also of those that are scaled to 0."""
    for namespace in {claim.metadata.namespace for claim in cluster.of(listings.CLAIMS)}:
        for maker in cluster.makers(EVERYTHING, namespace):
            yield namespace, maker.spec


RULES = (resizing, on_two_nodes, still_used, unused_claims)
