"""Which volume a claim gets, and what a volume becomes without its claim. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kvestigate.cluster.controllers.owners import any_selector
from kvestigate.cluster.controllers.pods import by_age
from kvestigate.kube.quantities import parse
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.meta import ObjectReference
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

PROVISIONER = "kvestigate.io/local-path"
"""Makes a directory on the node that the scheduler has chosen."""
ROOT = "/var/lib/kvestigate/local-path"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
HOSTNAME = "kubernetes.io/hostname"

LOCAL_PATH: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local-path", "annotations": {DEFAULT_CLASS: "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
    # A directory takes what the machine has, so a larger size is a number and nothing else.
    "allowVolumeExpansion": True,
}
"""The class that an embedded cluster starts with."""


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """Of several defaults the newest, as upstream decides."""
    marked = [
        storage_class
        for storage_class in classes
        if storage_class.metadata.annotations.get(DEFAULT_CLASS) == "true"
    ]
    return max(marked, key=by_age, default=None)


def is_claimed_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    same = (reference.namespace, reference.name) == (
        claim.metadata.namespace,
        claim.metadata.name,
    )
    return same and reference.uid in ("", claim.metadata.uid)


def fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a free volume offers what the claim asks for."""
    wanted, offered = claim.spec, volume.spec
    if offered.storage_class_name != (wanted.storage_class_name or ""):
        return False
    if not set(wanted.access_modes) <= set(offered.access_modes):
        return False
    if offered.volume_mode != wanted.volume_mode:
        return False
    if wanted.selector is not None:
        selector = any_selector(msgspec.to_builtins(wanted.selector))
        if not selector.matches(volume.metadata.labels):
            return False
    requested = parse(wanted.resources.requests.get("storage", "0"))
    return requested <= parse(offered.capacity.get("storage", "0"))


def match(
    claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume]
) -> PersistentVolume | None:
    """The volume that is meant for the claim, or the smallest free one that fits."""
    own = [volume for volume in volumes if is_claimed_by(volume, claim)]
    if own:
        return own[0]
    free = [
        volume
        for volume in volumes
        if volume.spec.claim_ref is None
        and volume.metadata.deletion_timestamp is None
        and volume.status.phase in ("", "Available", "Pending")
        and fits(volume, claim)
    ]
    return min(
        free,
        key=lambda volume: (parse(volume.spec.capacity.get("storage", "0")), volume.metadata.name),
        default=None,
    )


def provisioned(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node
) -> dict[str, Any]:
    """The volume of a claim: a directory on one node, which the node makes when it is used."""
    name = f"pvc-{claim.metadata.uid}"
    host = node.metadata.labels.get(HOSTNAME, node.metadata.name)
    key = HOSTNAME if HOSTNAME in node.metadata.labels else "metadata.name"
    test = {"key": key, "operator": "In", "values": [host]}
    where = "matchExpressions" if key == HOSTNAME else "matchFields"
    directory = f"{ROOT}/{name}_{claim.metadata.namespace}_{claim.metadata.name}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": claim.spec.resources.requests.get("storage", "0")},
            "accessModes": list(claim.spec.access_modes),
            "volumeMode": claim.spec.volume_mode,
            "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
            "storageClassName": storage_class.metadata.name,
            "claimRef": claim_reference(claim),
            "hostPath": {"path": directory, "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{where: [test]}]}},
        },
    }


def grown(claim: PersistentVolumeClaim, volume: PersistentVolume) -> str | None:
    """The size to expand a volume of ours to; None if it is large enough for the claim."""
    if volume.metadata.annotations.get(PROVISIONED_BY) != PROVISIONER:
        return None
    requested = claim.spec.resources.requests.get("storage", "0")
    had = min(
        parse(volume.spec.capacity.get("storage", "0")),
        parse(claim.status.capacity.get("storage", "0")),
    )
    return requested if parse(requested) > had else None


def claim_reference(claim: PersistentVolumeClaim) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
    }


def phase_of(volume: PersistentVolume, owner: PersistentVolumeClaim | None) -> str:
    """What a volume is, given the claim that it names."""
    reference: ObjectReference | None = volume.spec.claim_ref
    agrees = (
        reference is not None
        and owner is not None
        and reference.uid in ("", owner.metadata.uid)
        and owner.spec.volume_name == volume.metadata.name
    )
    if agrees:
        return "Bound"
    if volume.status.phase == "Failed":
        return "Failed"  # until somebody has looked at it
    if reference is None or (owner is not None and reference.uid in ("", owner.metadata.uid)):
        return "Available"
    # Reserved by name alone, the claim may still come; with a uid it is gone for good.
    return "Released" if reference.uid else "Available"
