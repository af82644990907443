"""RuntimeClasses. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec.resources import validate_container_resources
from kvestigate.cluster.plane.kinds.podspec.scheduling import validate_tolerations
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes


class RuntimeClassKind(Kind):
    has_plain_finalizers = True
    creates_on_update = True
    updates_unconditionally = False

    def validate(self, obj: Object, scene: Scene) -> Causes:
        if obj.get("handler"):
            yield from checks.label("handler", obj["handler"])
        else:
            yield causes.required("handler")
        if "overhead" in obj:
            limits = {"limits": obj["overhead"].get("podFixed") or {}}
            yield from validate_container_resources("overhead", limits, frozenset())
        scheduling = obj.get("scheduling") or {}
        if "nodeSelector" in scheduling:
            yield from checks.labels("scheduling.nodeSelector", scheduling["nodeSelector"])
        if "tolerations" in scheduling:
            tolerations = scheduling["tolerations"]
            yield from validate_tolerations("scheduling.tolerations", tolerations)
            yield from _duplicates("scheduling.tolerations", tolerations)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("", new, old, "handler")


def _duplicates(path: str, tolerations: list[Object]) -> Causes:
    seen: list[Object] = []
    for index, toleration in enumerate(tolerations):
        key = {name: toleration.get(name) for name in ("key", "operator", "value", "effect")}
        if key in seen:
            yield causes.duplicate(f"{path}[{index}]", toleration)
        seen.append(key)
