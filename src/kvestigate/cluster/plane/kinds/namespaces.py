"""Namespaces stay, terminating, until the namespace controller has emptied them."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds.checks import label_key
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

FINALIZER = "kubernetes"
_STANDARD = (FINALIZER, "orphan", "foregroundDeletion")


class NamespaceKind(Kind):
    status_carries_metadata = True
    returns_deleted = True
    selectable = (("status.phase", lambda obj: (obj.get("status") or {}).get("phase", "")),)

    def name_problems(self, name: str) -> list[str]:
        return names.label_problems(name)

    def default(self, obj: Object) -> None:
        meta = obj["metadata"]
        if meta.get("name"):
            labels = meta.get("labels") or {}
            meta["labels"] = {**labels, "kubernetes.io/metadata.name": meta["name"]}

    def on_create(self, obj: Object, scene: Scene) -> None:
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        if FINALIZER not in finalizers:
            finalizers = [*finalizers, FINALIZER]
        obj["spec"] = {"finalizers": finalizers}
        obj["status"] = {"phase": "Active"}

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        # Only the `finalize` subresource lets go of the namespace's own finalizers.
        if scene.subresource != "finalize":
            new["spec"] = old.get("spec", {})

    def validate(self, obj: Object, scene: Scene) -> Causes:
        for name in (obj.get("spec") or {}).get("finalizers") or ():
            yield from _finalizer(name)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        ending = "deletionTimestamp" in new["metadata"]
        allowed, phase = "Terminating" if ending else "Active", new["status"].get("phase", "")
        if phase == allowed:
            return []
        when = "not empty" if ending else "empty"
        why = f"may only be '{allowed}' if `deletionTimestamp` is {when}"
        # The capital is the server's.
        return [causes.invalid("status.Phase", phase, why)]

    def has_finalizers(self, obj: Object) -> bool:
        return super().has_finalizers(obj) or bool((obj.get("spec") or {}).get("finalizers"))

    def on_delete(self, obj: Object, scene: Scene) -> None:
        obj.setdefault("status", {})["phase"] = "Terminating"
        # A namespace has no time of grace, and kube-apiserver does not claim one of zero.
        obj["metadata"].pop("deletionGracePeriodSeconds", None)


def _finalizer(name: str) -> Causes:
    yield from label_key("spec.finalizers", name)
    if "/" not in name and name not in _STANDARD:
        why = "name is neither a standard finalizer name nor is it fully qualified"
        yield causes.invalid("spec.finalizers", name, why)
