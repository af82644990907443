"""What a namespace, a class or the cluster adds to every new pod."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.kinds.priority_classes import SYSTEM
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import Collection
from kvestigate.errors import ApiError

PRIORITY_CLASSES = ("scheduling.k8s.io", "priorityclasses")
RUNTIME_CLASSES = ("node.k8s.io", "runtimeclasses")
_PREEMPTS = "PreemptLowerPriority"
_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EVICTING = ("NoExecute", "", None)
_PATIENCE = 300
"""Seconds that a pod stays on a node in trouble."""


def give_priority(write: Write) -> None:
    """The number behind the name of a priority class."""
    spec = write.new["spec"]
    if write.old is not None:
        for field in ("priority", "preemptionPolicy"):
            if field in write.old["spec"]:
                spec.setdefault(field, write.old["spec"][field])
    if not write.creates:
        return
    priority_class = _priority_class(write)
    if priority_class is not None:
        spec["priorityClassName"] = priority_class["metadata"]["name"]
    priority_class = priority_class or {}
    value, policy = (
        priority_class.get("value", 0),
        priority_class.get("preemptionPolicy", _PREEMPTS),
    )
    computed = "priority admission controller computed"
    by = "from the given PriorityClass name"
    if spec.get("priority", value) != value:
        rule = f"the integer value of priority ({spec['priority']}) must not be provided"
        raise write.forbidden(f"{rule} in pod spec; {computed} {value} {by}")
    if spec.get("preemptionPolicy", policy) != policy:
        rule = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be"
        raise write.forbidden(f"{rule} provided in pod spec; {computed} {policy} {by}")
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _priority_class(write: Write) -> Object | None:
    state = write.scene.state
    if name := write.new["spec"].get("priorityClassName"):
        item = state.get(PRIORITY_CLASSES, "", name)
        if item is None:
            raise write.forbidden(f"no PriorityClass with name {name} was found")
        return objects.read(item)
    default = _default_class(state.collection(PRIORITY_CLASSES))
    return None if default is None else objects.read(default)


# Planes share their collections until they change, and classes hardly ever do.
@lru_cache(maxsize=256)
def _default_class(classes: Collection) -> Item | None:
    """The class of pods that name none: of several the lowest."""
    defaults = [
        (obj.get("value", 0), item)
        for item in classes.items()
        if b'"globalDefault":true' in item.data and (obj := objects.read(item)).get("globalDefault")
    ]
    return min(defaults, key=lambda each: int(each[0]), default=(0, None))[1]


def allow_one_default_priority(write: Write) -> None:
    if write.operation == "DELETE" or not write.new.get("globalDefault"):
        return
    for item in write.scene.state.collection(PRIORITY_CLASSES).items():
        if item.name == write.new["metadata"].get("name"):
            continue
        if objects.read(item).get("globalDefault"):
            why = f"PriorityClass {item.name} is already marked as default. Only one default"
            raise write.forbidden(f"{why} can exist")


def keep_system_priorities(write: Write) -> None:
    if write.operation == "DELETE" and write.info.name in SYSTEM:
        raise write.forbidden("this is a system priority class and cannot be deleted")


def tolerate_trouble(write: Write) -> None:
    """Pods leave a node that does not answer after a while, unless they say otherwise."""
    if write.operation == "DELETE" or write.info.subresource:
        return
    spec = write.new["spec"]
    present: list[Object] = spec.get("tolerations") or []
    tolerated = {
        toleration.get("key") or ""
        for toleration in present
        if toleration.get("effect") in _EVICTING
    }
    if "" in tolerated:  # any trouble
        return
    added: list[dict[str, Any]] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _PATIENCE}
        for key in _TROUBLES
        if key not in tolerated
    ]
    if added:
        spec["tolerations"] = [*present, *added]


def apply_runtime_class(write: Write) -> None:
    """A runtime class tells what it costs and where it runs."""
    if not write.creates:
        return
    spec = write.new["spec"]
    name = spec.get("runtimeClassName")
    if name is None:
        return
    if not name:
        raise ApiError("resource name may not be empty")
    item = write.scene.state.get(RUNTIME_CLASSES, "", name)
    if item is None:
        raise write.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
    runtime_class = objects.read(item)
    if cost := (runtime_class.get("overhead") or {}).get("podFixed"):
        if spec.get("overhead") not in (None, {}, cost):
            why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise write.forbidden(f"pod rejected: {why}")
        spec["overhead"] = cost
    _place(write, spec, runtime_class.get("scheduling") or {})


def check_overhead(write: Write) -> None:
    """Only a runtime class can make a pod cost more than its containers."""
    spec = write.new["spec"]
    if not write.creates or "overhead" not in spec:
        return
    item = None
    if name := spec.get("runtimeClassName"):
        item = write.scene.state.get(RUNTIME_CLASSES, "", name)
    if item is None or not (objects.read(item).get("overhead") or {}).get("podFixed"):
        why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise write.forbidden(f"pod rejected: {why}")


def _place(write: Write, spec: Object, scheduling: Object) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            wanted = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            raise write.forbidden(
                f"conflict: {wanted}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    present = spec.get("tolerations") or []
    added = [each for each in scheduling.get("tolerations") or () if each not in present]
    if added:
        spec["tolerations"] = [*present, *added]
