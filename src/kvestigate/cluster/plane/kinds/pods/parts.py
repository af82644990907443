"""The parts of a pod with a subresource of their own: `ephemeralcontainers` and `resize`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.cluster.plane.kinds.checks import difference
from kvestigate.cluster.plane.kinds.pods.qos import qos_class
from kvestigate.cluster.plane.kinds.podspec.annotations import MIRROR
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause, Causes
from kvestigate.kube.fieldpaths import Path

EPHEMERAL = "ephemeralcontainers"
RESIZE = "resize"

RESIZABLE = frozenset({"cpu", "memory"})
_CONTAINERS = ("containers", "initContainers")


def keep_part(new: Object, old: Object, subresource: str) -> None:
    """Restore everything in `new` that the subresource may not change."""
    spec = dict(old["spec"])
    if subresource == EPHEMERAL:
        spec["ephemeralContainers"] = new["spec"].get("ephemeralContainers") or []
        if not spec["ephemeralContainers"]:
            del spec["ephemeralContainers"]
    else:
        _keep_sizes(spec, new["spec"])
    meta = dict(old["metadata"])
    if managed := new["metadata"].get("managedFields"):
        meta["managedFields"] = managed
    new.clear()
    new.update({**old, "metadata": meta, "spec": spec})


def _keep_sizes(spec: Object, after: Object) -> None:
    """Other containers than before are kept, too: they are refused."""
    for field in _CONTAINERS:
        before, wanted = spec.get(field) or [], after.get(field) or []
        if _names(before) != _names(wanted):
            spec[field] = wanted
        elif before:
            spec[field] = list(map(_sized, before, wanted))
    spec.pop("resources", None)
    if "resources" in after:
        spec["resources"] = after["resources"]


def _sized(container: Object, wanted: Object) -> Object:
    sized = {**container, "resources": wanted.get("resources") or {}}
    sized.pop("resizePolicy", None)
    return sized | ({"resizePolicy": wanted["resizePolicy"]} if "resizePolicy" in wanted else {})


def _names(containers: list[Object]) -> list[str]:
    return [each["name"] for each in containers]


def validate_ephemeral(new: Object, old: Object) -> list[Cause]:
    """Ephemeral containers may be added, but neither changed nor removed."""
    path = Path("spec").child("ephemeralContainers")
    present = {each["name"]: each for each in new["spec"].get("ephemeralContainers") or ()}
    problems = []
    for before in old["spec"].get("ephemeralContainers") or ():
        name = before["name"]
        if name not in present:
            what = "removed\n"
        elif present[name] != before:
            what = f"changed\n{difference(before, present[name])}"
        else:
            continue
        why = f'existing ephemeral containers "{name}" may not be {what}'
        problems.append(causes.forbidden(path, why))
    return problems


def validate_resize(new: Object, old: Object) -> Causes:
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield causes.forbidden("[]", "static pods cannot be resized")
        return
    spec, before = new["spec"], old["spec"]
    if qos_class(spec) != (qos := qos_class(before)):
        yield causes.invalid("spec", qos, "Pod QOS Class may not change as a result of resizing")
    if not _node_resizes(old):
        yield causes.forbidden("spec", "Pod running on node without support for resize")
    yield from _whole_pod(spec.get("resources") or {}, before.get("resources") or {})
    if moved := list(_moved(spec, before)):
        yield from moved
        return
    for field in ("initContainers", "containers"):
        for path, container, was in _pairs(field, spec, before):
            yield from _removed(path, container, was)
    for _, container, was in _pairs("containers", spec, before):
        if _fixed(container) != _fixed(was):
            yield causes.forbidden("spec", "only cpu and memory resources are mutable")
    for path, container, was in _pairs("initContainers", spec, before):
        if _fixed(container) != _fixed(was):
            what = "resources for init or sidecar containers"
            yield causes.forbidden(path, f"only cpu and memory {what} are mutable")


def _node_resizes(pod: Object) -> bool:
    """Nodes that do tell what those that run have been given."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if "running" in (status.get("state") or {}):
            return "resources" in status
    return True


def _whole_pod(after: Object, before: Object) -> Causes:
    path = Path("spec").child("resources")
    if before and not after:
        yield causes.forbidden(path, "pod-level resources cannot be removed")
        return
    for kind in ("requests", "limits"):
        if set(before.get(kind) or {}) - set(after.get(kind) or {}):
            why = f"pod-level resource {kind} cannot be removed"
            yield causes.forbidden(path.child(kind), why)
    if _unsizable(after) != _unsizable(before):
        yield causes.forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _moved(spec: Object, before: Object) -> Causes:
    for field in _CONTAINERS:
        names, known = _names(spec.get(field) or []), _names(before.get(field) or [])
        path = Path("spec").child(field)
        if len(names) != len(known):
            yield causes.forbidden(path, f"{field} may not be added or removed on resize")
            continue
        for index, (name, was) in enumerate(zip(names, known, strict=True)):
            if name != was:
                why = f"{field} may not be renamed or reordered on resize"
                yield causes.forbidden(path.index(index).child("name"), why)


def _pairs(field: str, spec: Object, before: Object) -> Iterator[tuple[Path, Object, Object]]:
    pairs = zip(spec.get(field) or (), before.get(field) or (), strict=True)
    for index, (container, was) in enumerate(pairs):
        yield Path("spec").child(field).index(index), container, was


def _removed(path: Path, container: Object, was: Object) -> list[Cause]:
    problems = []
    for kind in ("limits", "requests"):
        after = (container.get("resources") or {}).get(kind) or {}
        gone = set((was.get("resources") or {}).get(kind) or {}) - set(after)
        if gone & RESIZABLE:
            why = f"resource {kind} cannot be removed"
            problems.append(causes.forbidden(path.child("resources", kind), why))
    return problems


def _fixed(container: Object) -> tuple[Any, ...]:
    """The fields that a resize must not change."""
    return _unsizable(container.get("resources") or {}), container.get("resizePolicy")


def _unsizable(resources: Object) -> dict[str, Object]:
    """Requests and limits of resources that cannot be resized."""
    return {
        kind: {name: amount for name, amount in amounts.items() if name not in RESIZABLE}
        for kind in ("limits", "requests")
        if (amounts := resources.get(kind) or {}) and set(amounts) - RESIZABLE
    }
