"""ServiceAccounts: names that pods run under."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Kind, Object, Scene

_ENFORCE = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountKind(Kind):
    returns_deleted = True

    def on_create(self, obj: Object, scene: Scene) -> None:
        _only_names(obj)

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        _only_names(new)

    def warnings(self, obj: Object) -> list[str]:
        if _ENFORCE not in (obj["metadata"].get("annotations") or ()):
            return []
        why = "prefer separate namespaces to isolate access to mounted secrets"
        return [f"metadata.annotations[{_ENFORCE}]: deprecated in v1.32+; {why}"]


def _only_names(obj: Object) -> None:
    """Of a referenced secret nothing but its name counts."""
    if "secrets" in obj:
        names = (secret.get("name") for secret in obj["secrets"])
        obj["secrets"] = [{"name": name} if name else {} for name in names]
