"""Columns of PersistentVolumes, of claims on them, and of storage.k8s.io. Pure."""

from __future__ import annotations

from collections.abc import Callable

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Columns,
    at,
    column,
    flag,
    integer,
    joined,
    reference,
    size,
)
from kvestigate.cluster.plane.response.tables.networks import default_marked

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(part: str) -> Callable[[Object], str]:
    """The access modes of the spec or the status."""

    def read(obj: Object) -> str:
        present = at(obj, part, "accessModes") or ()
        return ",".join(short for mode, short in _MODES.items() if mode in present)

    return read


def _if_bound(read: Callable[[Object], str]) -> Callable[[Object], str]:
    """The cell of a claim that has a volume; empty for others."""
    return lambda obj: read(obj) if obj["spec"].get("volumeName") else ""


def _phase(obj: Object) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    return str((obj.get("status") or {}).get("phase", ""))


def _class(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION, obj["spec"].get("storageClassName", "")))


_ATTRIBUTES_CLASS = column("VolumeAttributesClass", "spec.volumeAttributesClassName", UNSET)
_VOLUME_MODE = column("VolumeMode", "spec.volumeMode", UNSET, wide=True)

VOLUMES = Columns(
    NAME,
    column("Capacity", "spec.capacity.storage", "0"),
    column("Access Modes", _modes("spec")),
    column("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
    column("Status", _phase),
    column("Claim", reference("spec.claimRef", "namespace", "name", default="")),
    column("StorageClass", _class),
    _ATTRIBUTES_CLASS,
    column("Reason", "status.reason"),
    AGE,
    _VOLUME_MODE,
)
CLAIMS = Columns(
    NAME,
    column("Status", _phase),
    column("Volume", "spec.volumeName"),
    column("Capacity", _if_bound(lambda obj: at(obj, "status", "capacity", "storage") or "0")),
    column("Access Modes", _if_bound(_modes("status"))),
    column("StorageClass", _class),
    _ATTRIBUTES_CLASS,
    AGE,
    _VOLUME_MODE,
)
STORAGE_CLASSES = Columns(
    default_marked(
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ),
    column("Provisioner", "provisioner"),
    column("ReclaimPolicy", "reclaimPolicy", "Delete"),
    column("VolumeBindingMode", "volumeBindingMode", "Immediate"),
    column("AllowVolumeExpansion", "allowVolumeExpansion", False),
    AGE,
)
VOLUME_ATTRIBUTES_CLASSES = Columns(NAME, column("DriverName", "driverName"), AGE)


def _audiences(obj: Object) -> str:
    tokens = obj["spec"].get("tokenRequests")
    return UNSET if tokens is None else ",".join(token.get("audience", "") for token in tokens)


CSI_DRIVERS = Columns(
    NAME,
    flag("AttachRequired", "spec.attachRequired", default=True),
    flag("PodInfoOnMount", "spec.podInfoOnMount"),
    flag("StorageCapacity", "spec.storageCapacity"),
    column("TokenRequests", _audiences),
    flag("RequiresRepublish", "spec.requiresRepublish"),
    column("Modes", joined("spec.volumeLifecycleModes", NONE)),
    AGE,
)
CSI_NODES = Columns(NAME, integer("Drivers", size("spec.drivers")), AGE)
VOLUME_ATTACHMENTS = Columns(
    NAME,
    column("Attacher", "spec.attacher", format="name"),
    column("PV", "spec.source.persistentVolumeName"),
    column("Node", "spec.nodeName"),
    flag("Attached", "status.attached"),
    AGE,
)
