"""PersistentVolumes, their attachments and StorageClasses. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvestigate.health.cluster import Cluster, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.claims import DEFAULT_CLASS, bytes_of
from kvestigate.kube.eligibility import matches_term
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.storage import PersistentVolume
from kvestigate.render.human import listed, since_when, size
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings

_KIND = "PersistentVolume"
_HOSTNAME = "kubernetes.io/hostname"


def _fault(volume: PersistentVolume, severity: Severity, evidence: str, why: str) -> Fault:
    return Fault(
        severity=severity,
        subject=subject_of(_KIND, volume.metadata),
        evidence=evidence,
        why=why,
        command=f"kubectl describe pv {volume.metadata.name}",
    )


@rule(
    "volume-orphaned",
    "A PersistentVolume is left without a claim.",
    listings.VOLUMES,
    uses=(listings.EVENTS,),
)
def orphaned_volumes(cluster: Cluster) -> Iterator[Fault]:
    for volume in cluster.of(listings.VOLUMES):
        status, holder = volume.status, volume.spec.claim_ref
        if status.phase not in ("Released", "Failed") or volume.metadata.deletion_timestamp:
            continue
        claim = f"claim {holder.namespace}/{holder.name}" if holder is not None else "its claim"
        held = size(bytes_of(volume.spec.capacity))
        evidence = f"{status.phase}: {claim} no longer exists; the volume keeps {held}."
        failed = cluster.events(
            Subject(_KIND, volume.metadata.name), "VolumeFailedDelete", "VolumeFailedRecycle"
        )
        told = status.message or (f"{failed[0].reason}: {failed[0].message}" if failed else "")
        yield _fault(
            volume,
            Severity.WARNING,
            f"{evidence} {told}".rstrip(),
            "The volume still uses storage, and no claim can use it until it is reclaimed by hand.",
        )


@rule(
    "volume-unreachable",
    "A PersistentVolume belongs to a node that does not exist.",
    listings.VOLUMES,
    listings.NODES,
)
def unreachable_volumes(cluster: Cluster) -> Iterator[Fault]:
    nodes = cluster.of(listings.NODES)
    for volume in cluster.of(listings.VOLUMES):
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None or not nodes:
            continue
        terms = affinity.required.node_selector_terms
        if any(matches_term(term, node) for term in terms for node in nodes):
            continue
        holder = volume.spec.claim_ref
        yield _fault(
            volume,
            Severity.CRITICAL if holder is not None else Severity.WARNING,
            f"Its node affinity matches no node: {_missing(volume, nodes)}"
            + (f" (claim {holder.namespace}/{holder.name})." if holder is not None else "."),
            "No pod that uses the volume can be scheduled.",
        )


def _missing(volume: PersistentVolume, nodes: Sequence[Node]) -> str:
    affinity = volume.spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    known = {node.metadata.name for node in nodes}
    for term in terms:
        for each in (*term.match_expressions, *term.match_fields):
            gone = sorted(set(each.values) - known)
            if each.key in (_HOSTNAME, "metadata.name") and gone:
                return f"node {listed(gone)} does not exist"
        for each in term.match_expressions:
            return f"no node has {each.key} {each.operator} {listed(each.values)}"
    return "it has no terms"


@rule(
    "volume-attachment",
    "A volume cannot be attached to or detached from a node.",
    listings.VOLUME_ATTACHMENTS,
    uses=(listings.NODES, listings.VOLUMES),
)
def attachments(cluster: Cluster) -> Iterator[Fault]:
    for each in cluster.of(listings.VOLUME_ATTACHMENTS):
        spec, status = each.spec, each.status
        name = spec.source.persistent_volume_name
        detaching = each.metadata.deletion_timestamp is not None
        error = status.detach_error if detaching else status.attach_error
        if error is not None and (detaching or not status.attached):
            verb = "detached from" if detaching else "attached to"
            problem = (
                f"cannot be {verb} node {spec.node_name}{since_when(error.time)}: {error.message}"
            )
            begin = error.time
        elif cluster.lacks(listings.NODES, spec.node_name) and cluster.settled(
            each.metadata.creation_timestamp
        ):
            problem = f"is still attached to node {spec.node_name}, which does not exist"
            begin = None
        else:
            continue
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject_of("VolumeAttachment", each.metadata),
            evidence=f"PersistentVolume {name} {problem}.",
            why=f"Pods that use the volume cannot start (attacher {spec.attacher}).",
            command=f"kubectl describe volumeattachment {each.metadata.name}",
            since=begin,
            causes=(Subject("Node", spec.node_name),),
        )


@rule(
    "storage-classes-default",
    "More than one StorageClass is the default.",
    listings.STORAGE_CLASSES,
)
def default_classes(cluster: Cluster) -> Iterator[Fault]:
    defaults = [
        one.metadata
        for one in cluster.of(listings.STORAGE_CLASSES)
        if one.metadata.annotations.get(DEFAULT_CLASS) == "true"
    ]
    for meta in defaults if len(defaults) > 1 else ():
        others = sorted(other.name for other in defaults if other is not meta)
        yield Fault(
            severity=Severity.WARNING,
            subject=subject_of("StorageClass", meta),
            evidence=f"It is the default StorageClass, and so is {listed(others)}.",
            why="Claims that name no class get the newest default, which may be the wrong one.",
            command="kubectl get storageclasses",
        )


RULES = (orphaned_volumes, unreachable_volumes, attachments, default_classes)
