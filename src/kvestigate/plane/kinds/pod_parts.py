"""The parts of a pod with a subresource of their own: `ephemeralcontainers` and `resize`. Pure."""

from __future__ import annotations

from kvestigate.kube import causes
from kvestigate.kube.causes import Cause
from kvestigate.kube.fieldpaths import Path
from kvestigate.plane.kinds.difference import difference
from kvestigate.plane.kinds.kind import Object
from kvestigate.plane.kinds.qos import qos_class

EPHEMERAL = "ephemeralcontainers"
RESIZE = "resize"

RESIZABLE = frozenset({"cpu", "memory"})
_CONTAINERS = ("containers", "initContainers")


def keep_part(new: Object, old: Object, subresource: str) -> None:
    """Leave of `new` only what the subresource may change; the rest is as it was."""
    spec = dict(old["spec"])
    if subresource == EPHEMERAL:
        spec["ephemeralContainers"] = new["spec"].get("ephemeralContainers") or []
        if not spec["ephemeralContainers"]:
            del spec["ephemeralContainers"]
    else:
        for field in _CONTAINERS:
            if field in spec:
                spec[field] = _resized(spec[field], new["spec"].get(field) or [])
    meta = dict(old["metadata"])
    if managed := new["metadata"].get("managedFields"):
        meta["managedFields"] = managed
    new.clear()
    new.update({**old, "metadata": meta, "spec": spec})


def _resized(before: list[Object], after: list[Object]) -> list[Object]:
    resources = {each["name"]: each.get("resources") or {} for each in after}
    return [
        {**each, "resources": resources.get(each["name"], each.get("resources") or {})}
        for each in before
    ]


def validate_ephemeral(new: Object, old: Object) -> list[Cause]:
    """They can be added, and that is all: what ran is part of the pod's history."""
    path = Path("spec").child("ephemeralContainers")
    present = {each["name"]: each for each in new["spec"].get("ephemeralContainers") or ()}
    found = []
    for before in old["spec"].get("ephemeralContainers") or ():
        name = before["name"]
        if name not in present:
            what = "removed\n"
        elif present[name] != before:
            what = f"changed\n{difference(before, present[name])}"
        else:
            continue
        why = f'existing ephemeral containers "{name}" may not be {what}'
        found.append(causes.forbidden(path, why))
    return found


def validate_resize(new: Object, old: Object) -> list[Cause]:
    spec, before = new["spec"], old["spec"]
    if qos_class(spec) != (qos := qos_class(before)):
        why = "Pod QOS Class may not change as a result of resizing"
        return [causes.invalid("spec", qos, why)]
    found = []
    for field in _CONTAINERS:
        pairs = zip(spec.get(field) or (), before.get(field) or (), strict=True)
        for index, (container, was) in enumerate(pairs):
            found += _removed(Path("spec").child(field).index(index), container, was)
            if _fixed(container) != _fixed(was):
                why = "only cpu and memory resources are mutable"
                found.append(causes.forbidden("spec", why))
    return found


def _removed(path: Path, container: Object, was: Object) -> list[Cause]:
    found = []
    for kind in ("limits", "requests"):
        after = (container.get("resources") or {}).get(kind) or {}
        gone = set((was.get("resources") or {}).get(kind) or {}) - set(after)
        if gone & RESIZABLE:
            why = f"resource {kind} cannot be removed"
            found.append(causes.forbidden(path.child("resources", kind), why))
    return found


def _fixed(container: Object) -> dict[str, Object]:
    """The amounts that no resize may touch."""
    resources = container.get("resources") or {}
    return {
        kind: {name: amount for name, amount in amounts.items() if name not in RESIZABLE}
        for kind in ("limits", "requests")
        if (amounts := resources.get(kind) or {}) and set(amounts) - RESIZABLE
    }
