"""The class that a claim or an ingress gets when it names none."""

from __future__ import annotations

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.model import ResourceKey

STORAGE_CLASSES = ("storage.k8s.io", "storageclasses")
INGRESS_CLASSES = ("networking.k8s.io", "ingressclasses")
_STORAGE_MARKS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_MARKS = ("ingressclass.kubernetes.io/is-default-class",)


def give_storage_class(write: Write) -> None:
    meta, spec = write.new["metadata"], write.new["spec"]
    has_class = "storageClassName" in spec or _annotated(
        meta, "volume.beta.kubernetes.io/storage-class"
    )
    if write.creates and not has_class:
        name = _default(write, STORAGE_CLASSES, _STORAGE_MARKS)
        if name is not None:
            spec["storageClassName"] = name


def give_ingress_class(write: Write) -> None:
    meta, spec = write.new["metadata"], write.new["spec"]
    has_class = "ingressClassName" in spec or _annotated(meta, "kubernetes.io/ingress.class")
    if write.creates and not has_class:
        name = _default(write, INGRESS_CLASSES, _INGRESS_MARKS)
        if name is not None:
            spec["ingressClassName"] = name


def _annotated(meta: Object, name: str) -> bool:
    return name in (meta.get("annotations") or {})


def _default(write: Write, resource: ResourceKey, marks: tuple[str, ...]) -> str | None:
    """The class marked as the default: the youngest, then the first by name."""
    name = ""
    youngest = ""
    for item in write.scene.state.collection(resource).items():
        meta = objects.read(item)["metadata"]
        annotations = meta.get("annotations") or {}
        if not any(annotations.get(mark) == "true" for mark in marks):
            continue
        if meta["creationTimestamp"] > youngest:
            name, youngest = item.name, meta["creationTimestamp"]
    return name or None
