"""Columns of PersistentVolumes and of claims on them. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    NAME,
    UNSET,
    Cells,
    Columns,
    age,
    strings,
    wide,
)

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _volume(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    claim = spec.get("claimRef")
    return [
        obj["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName", UNSET),
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode", UNSET),
    ]


def _claim(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    bound = spec.get("volumeName", "")
    return [
        obj["metadata"]["name"],
        _phase(obj),
        bound,
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _modes(status) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName", UNSET),
        age(obj, now),
        spec.get("volumeMode", UNSET),
    ]


def _modes(holder: Object) -> str:
    present = holder.get("accessModes") or ()
    return ",".join(short for mode, short in _MODES.items() if mode in present)


def _phase(obj: Object) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    phase: str = (obj.get("status") or {}).get("phase", "")
    return phase


def _class(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    name: str = annotations.get(_CLASS_ANNOTATION, obj["spec"].get("storageClassName", ""))
    return name


VOLUMES = Columns(
    (
        NAME,
        *strings("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim"),
        *strings("StorageClass", "VolumeAttributesClass", "Reason", "Age"),
        *wide("VolumeMode"),
    ),
    _volume,
)
CLAIMS = Columns(
    (
        NAME,
        *strings("Status", "Volume", "Capacity", "Access Modes"),
        *strings("StorageClass", "VolumeAttributesClass", "Age"),
        *wide("VolumeMode"),
    ),
    _claim,
)
