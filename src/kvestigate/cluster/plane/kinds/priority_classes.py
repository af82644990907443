"""PriorityClasses. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

HIGHEST_OF_USERS = 1_000_000_000
SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_RESERVED = "system-"
_POLICIES = ("PreemptLowerPriority", "Never")


class PriorityClassKind(Kind):
    counts_generations = True

    def default(self, obj: Object) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def validate(self, obj: Object, scene: Scene) -> Causes:
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        if name.startswith(_RESERVED):
            if why := _not_known(name, value, is_default=obj.get("globalDefault", False)):
                text = (
                    f"priority class names with '{_RESERVED}' prefix are reserved for system use "
                    f"only. error: {why}"
                )
                yield causes.forbidden("metadata.name", text)
        elif value > HIGHEST_OF_USERS:
            why = f"maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}"
            yield causes.forbidden("value", why)
        yield from checks.one_of("preemptionPolicy", obj["preemptionPolicy"], _POLICIES)

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        if new.get("value", 0) != old.get("value", 0):
            yield causes.forbidden("value", "may not be changed in an update.")
        yield from checks.immutable("", new, old, "preemptionPolicy")

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return False  # what it could count cannot change


def _not_known(name: str, value: int, *, is_default: bool) -> str:
    if name not in SYSTEM:
        return f"{name} is not a known system priority class"
    if value != SYSTEM[name]:
        return f"value of {name} PriorityClass must be {SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""
