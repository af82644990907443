"""Volumes as containers see them: mounts and block devices. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import paths
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def validate_mounts(path: str, container: Object, volumes: dict[str, Object]) -> Causes:
    at = f"{path}.volumeMounts"
    devices = {
        device["name"]: device["devicePath"] for device in container.get("volumeDevices", ())
    }
    seen: set[str] = set()
    for index, mount in enumerate(container["volumeMounts"]):
        name, where = mount["name"], mount["mountPath"]
        if not name:
            yield causes.required(f"{at}[{index}].name")
        if name not in volumes:
            yield causes.missing(f"{at}[{index}].name", name)
        if not where:
            yield causes.required(f"{at}[{index}].mountPath")
        if where in seen:
            yield causes.invalid(f"{at}[{index}].mountPath", where, "must be unique")
        seen.add(where)
        if devices and name in devices:
            why = "must not already exist in volumeDevices"
            yield causes.invalid(f"{at}[{index}].name", name, why)
        if devices and where in devices.values():
            why = "must not already exist as a path in volumeDevices"
            yield causes.invalid(f"{at}[{index}].mountPath", where, why)
        if "subPath" in mount or "subPathExpr" in mount:
            yield from _sub_path(at, f"{at}[{index}]", mount)
        # The server itself leaves out the position in the next two.
        if "mountPropagation" in mount:
            yield from _propagation(f"{at}.mountPropagation", mount["mountPropagation"], container)
        if "recursiveReadOnly" in mount:
            yield from _recursive(f"{at}.recursiveReadOnly", mount)


def _sub_path(at: str, each: str, mount: Object) -> Causes:
    plain, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if plain:
        yield from paths.descending(f"{at}.subPath", plain)
    if expression:
        if plain:
            why = "subPathExpr and subPath are mutually exclusive"
            yield causes.invalid(f"{each}.subPathExpr", expression, why)
        yield from paths.descending(f"{at}.subPathExpr", expression)


def _propagation(path: str, value: str, container: Object) -> Causes:
    yield from checks.choice(path, value, _PROPAGATIONS)
    if value == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        why = "Bidirectional mount propagation is available only to privileged containers"
        yield causes.forbidden(path, why)


def _recursive(path: str, mount: Object) -> Causes:
    value = mount["recursiveReadOnly"]
    if value not in _RECURSIVE:
        yield causes.unsupported(path, value, _RECURSIVE)
    elif value != "Disabled":
        if not mount.get("readOnly"):
            yield causes.forbidden(path, "may only be specified when readOnly is true")
        if mount.get("mountPropagation", "None") != "None":
            why = "may only be specified when mountPropagation is None or not specified"
            yield causes.forbidden(path, why)


def validate_devices(path: str, container: Object, volumes: dict[str, Object]) -> Causes:
    mounted = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", ())}
    names: set[str] = set()
    places: set[str] = set()
    for index, device in enumerate(container["volumeDevices"]):
        each = f"{path}.volumeDevices[{index}]"
        name, where = device["name"], device["devicePath"]
        volume = volumes.get(name)
        if not name:
            yield causes.required(f"{each}.name")
        if name in names:
            yield causes.invalid(f"{each}.name", name, "must be unique")
        if volume is None:
            yield causes.missing(f"{each}.name", name)
        elif not volume.keys() & {"persistentVolumeClaim", "ephemeral"}:
            why = (
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block "
                "mode"
            )
            yield causes.invalid(f"{each}.name", name, why)
        yield from _device_path(f"{each}.devicePath", where, places)
        if name in mounted:
            yield causes.invalid(f"{each}.name", name, "must not already exist in volumeMounts")
        if where in mounted.values():
            why = "must not already exist as a path in volumeMounts"
            yield causes.invalid(f"{each}.devicePath", where, why)
        if name:
            names.add(name)


def _device_path(path: str, where: str, seen: set[str]) -> Causes:
    if not where:
        yield causes.required(path)
    if where in seen:
        yield causes.invalid(path, where, "must be unique")
    if ".." in where.split("/"):
        yield causes.invalid(path, where, "can not contain backsteps ('..')")
    else:
        seen.add(where)
