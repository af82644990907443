"""Kinds with hardly a rule of their own: ServiceAccounts, Leases and the like. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

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
    """Keep only the names of referenced secrets."""
    if "secrets" in obj:
        names = (secret.get("name") for secret in obj["secrets"])
        obj["secrets"] = [{"name": name} if name else {} for name in names]


class LeaseKind(Kind):
    has_plain_finalizers = True
    shares_on_update = True
    creates_on_update = True
    updates_unconditionally = False

    def on_create(self, obj: Object, scene: Scene) -> None:
        _drop_unserved(obj["spec"])

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        _drop_unserved(new["spec"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        duration = spec.get("leaseDurationSeconds", 1)
        if duration <= 0:
            yield causes.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
        yield from checks.not_negative("spec.leaseTransitions", spec.get("leaseTransitions", 0))


def _drop_unserved(spec: Object) -> None:
    # Coordinated election is a feature that is off by default.
    spec.pop("strategy", None)
    spec.pop("preferredHolder", None)


class ComponentStatusKind(Kind):
    deprecation = "v1 ComponentStatus is deprecated in v1.19+"


class ControllerRevisionKind(Kind):
    def validate(self, obj: Object, scene: Scene) -> Causes:
        problems = list(checks.not_negative("revision", obj.get("revision", 0)))
        data = obj.get("data")
        if data is None:
            problems.append(causes.required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            problems.append(causes.required("data", "data must be a valid JSON object"))
        return problems

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("", new, old, "data")
