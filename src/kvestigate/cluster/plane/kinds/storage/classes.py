"""StorageClasses and VolumeAttributesClasses. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

_PARAMETERS_MAX, _PARAMETERS_SIZE = 512, 256 * 1024
_RECLAIM_POLICIES = ("Delete", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
PROTECTION = "kubernetes.io/vac-protection"
"""A finalizer: a class stays as long as a volume has it."""


class StorageClassKind(Kind):
    returns_deleted = True

    def default(self, obj: Object) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Object, scene: Scene) -> Causes:
        yield from _provisioner("provisioner", obj.get("provisioner", ""))
        yield from _parameters(obj.get("parameters") or {})
        policy = obj["reclaimPolicy"]
        if policy and policy not in _RECLAIM_POLICIES:
            yield causes.unsupported("reclaimPolicy", policy, _RECLAIM_POLICIES)
        mode = obj["volumeBindingMode"]
        yield from checks.choice("volumeBindingMode", mode, _BINDING_MODES)
        terms = obj.get("allowedTopologies") or []
        seen: list[Any] = []
        for index, term in enumerate(terms):
            path = f"allowedTopologies[{index}].matchLabelExpressions"
            requirements = term.get("matchLabelExpressions") or []
            yield from _topology(path, requirements)
            if requirements in seen:
                yield causes.duplicate(path, "")
            seen.append(requirements)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("", new, old, *_FIXED)


class VolumeAttributesClassKind(Kind):
    returns_deleted = True

    def on_create(self, obj: Object, scene: Scene) -> None:
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if PROTECTION not in finalizers:
            finalizers.append(PROTECTION)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        yield from _provisioner("driverName", obj.get("driverName", ""))
        parameters = obj.get("parameters") or {}
        yield from _parameters(parameters)
        if not parameters:
            yield causes.required("parameters", "must contain at least one key/value pair")

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        for name in ("driverName", "parameters"):
            if new.get(name) != old.get(name):
                yield causes.forbidden(name, f"updates to {name} are forbidden.")
        yield from self.validate(new, scene)


def _provisioner(path: str, name: str) -> Causes:
    if name:
        yield from checks.label_key(path, name.lower())
    else:
        yield causes.required(path)


def _parameters(parameters: dict[str, str]) -> Causes:
    if len(parameters) > _PARAMETERS_MAX:
        yield causes.too_long("parameters", _PARAMETERS_MAX)
        return
    if "" in parameters:
        yield causes.invalid("parameters", "", "field can not be empty.")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > _PARAMETERS_SIZE:
        yield causes.too_long("parameters", _PARAMETERS_SIZE)


def _topology(path: str, requirements: list[Object]) -> Causes:
    keys: set[str] = set()
    for index, requirement in enumerate(requirements):
        at, key = f"{path}[{index}]", requirement.get("key", "")
        values = requirement.get("values") or []
        if not values:
            yield causes.required(f"{at}.values")
        for position, value in enumerate(values):
            if value in values[:position]:
                yield causes.duplicate(f"{at}.values[{position}]", value)
        yield from checks.label_key(f"{at}.key", key)
        if key in keys:
            yield causes.duplicate(f"{at}.key", key)
        keys.add(key)
