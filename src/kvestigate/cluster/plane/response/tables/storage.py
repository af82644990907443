"""Columns of storage.k8s.io. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Column,
    Columns,
    age,
    strings,
)
from kvestigate.cluster.plane.response.tables.networks import default_marked

_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _class(obj: Object, now: float) -> Cells:
    return [
        default_marked(obj, *_DEFAULT_CLASS),
        obj["provisioner"],
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        age(obj, now),
    ]


def _attributes_class(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now)]


def _driver(obj: Object, now: float) -> Cells:
    spec, tokens = obj["spec"], obj["spec"].get("tokenRequests")
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if tokens is None else ",".join(token.get("audience", "") for token in tokens),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


def _node(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], len(obj["spec"].get("drivers") or ()), age(obj, now)]


def _attachment(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        spec["source"].get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        obj["status"].get("attached", False),
        age(obj, now),
    ]


def _flags(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "boolean") for name in names)


STORAGE_CLASSES = Columns(
    (
        NAME,
        *strings(
            "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"
        ),
    ),
    _class,
)
VOLUME_ATTRIBUTES_CLASSES = Columns((NAME, *strings("DriverName", "Age")), _attributes_class)
CSI_DRIVERS = Columns(
    (
        NAME,
        *_flags("AttachRequired", "PodInfoOnMount", "StorageCapacity"),
        *strings("TokenRequests"),
        *_flags("RequiresRepublish"),
        *strings("Modes", "Age"),
    ),
    _driver,
)
CSI_NODES = Columns((NAME, Column("Drivers", "integer"), AGE), _node)
VOLUME_ATTACHMENTS = Columns(
    (
        NAME,
        Column("Attacher", format="name"),
        *strings("PV", "Node"),
        *_flags("Attached"),
        AGE,
    ),
    _attachment,
)
