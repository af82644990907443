"""Namespaces stay, terminating, until the namespace controller has emptied them."""

from __future__ import annotations

from kvestigate.kube import names
from kvestigate.plane.kinds.kind import Kind, Object, Scene

FINALIZER = "kubernetes"


class NamespaceKind(Kind):
    status_carries_metadata = True
    returns_deleted = True
    selectable = (
        ("status.phase", lambda obj: (obj.get("status") or {}).get("phase", "")),
        # Known by mistake, and kept since clients use it.
        ("name", lambda obj: obj["metadata"]["name"]),
    )

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

    def held(self, obj: Object) -> bool:
        return super().held(obj) or bool((obj.get("spec") or {}).get("finalizers"))

    def on_delete(self, obj: Object, scene: Scene) -> None:
        obj.setdefault("status", {})["phase"] = "Terminating"
