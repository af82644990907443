"""Storage that is in use stays, and grows only where its class lets it."""

from __future__ import annotations

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.rules.classes import STORAGE_CLASSES
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube import quantities

_FINALIZERS = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
}


def protect_in_use(write: Write) -> None:
    if not write.creates:
        return
    meta = write.new["metadata"]
    finalizer = _FINALIZERS[write.kind.resource.plural]
    if finalizer not in (meta.get("finalizers") or ()):
        meta["finalizers"] = [*(meta.get("finalizers") or ()), finalizer]


def check_resize(write: Write) -> None:
    if write.operation != "UPDATE" or write.old is None or write.info.subresource:
        return
    if _size(write.new) <= _size(write.old):
        return
    if (write.old.get("status") or {}).get("phase") != "Bound":
        raise write.forbidden("Only bound persistent volume claims can be expanded")
    name = write.old["spec"].get("storageClassName")
    item = write.scene.state.get(STORAGE_CLASSES, "", name) if name else None
    if item is None or not objects.read(item).get("allowVolumeExpansion"):
        raise write.forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that "
            "provisions the pvc must support resize"
        )


def _size(claim: Object) -> quantities.Quantity:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return quantities.parse(requests.get("storage", "0"))
