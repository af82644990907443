"""ResourceSlices: the devices that a driver offers. Pure."""

from __future__ import annotations

import re

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.devices import parts as devices
from kvestigate.cluster.plane.kinds.podspec.scheduling import validate_node_selector
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.model.metadata import timestamp
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_DEVICE_PLACES = ("nodeName", "nodeSelector", "allNodes")
_DEVICES_MAX, _ADVANCED_MAX, _COUNTER_SETS_MAX, _CONSUMED_MAX = 128, 64, 8, 2
_PROPERTIES_MAX, _TAINTS_MAX, _CONDITIONS_MAX, _COUNTERS_MAX = 32, 16, 4, 32
_POOL_MAX, _VALUE_MAX = 253, 64
_VALUES = ("int", "bool", "string", "version")
"""What an attribute may be; or many of them, which is behind a feature gate."""
_NUMBER = r"(?:0|[1-9]\d*)"
_PRERELEASE = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_is_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
).fullmatch


class ResourceSliceKind(Kind):
    counts_generations = True
    returns_deleted = True
    selectable = (
        ("spec.nodeName", lambda obj: obj["spec"].get("nodeName", "")),
        ("spec.driver", lambda obj: obj["spec"].get("driver", "")),
    )

    def field_refusal(self, field: str) -> str:
        kind = f"{self.resource.api_version}, Kind={self.resource.kind}"
        return f"field label not supported for {kind}: {field}"

    def default(self, obj: Object) -> None:
        for device in obj["spec"].get("devices") or ():
            # Behind feature gates that are off by default: the server forgets them.
            device.pop("nodeAllocatableResourceMappings", None)
            for attribute in (device.get("attributes") or {}).values():
                for name in _VALUES:
                    attribute.pop(f"{name}s", None)

    def on_create(self, obj: Object, scene: Scene) -> None:
        _date_taints(obj["spec"], scene.now)

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        _date_taints(new["spec"], scene.now)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _slice(obj["spec"], None)

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return _slice(new["spec"], old["spec"])


def _date_taints(spec: Object, now: float) -> None:
    for device in spec.get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", timestamp(now))


def _slice(spec: Object, before: Object | None) -> Causes:
    yield from checks.driver_name("spec.driver", spec.get("driver", ""))
    yield from _pool("spec.pool", spec["pool"])
    if before is not None:
        yield from checks.immutable("spec.pool", spec["pool"], before["pool"], "name")
        yield from checks.immutable("spec", spec, before, "driver", "nodeName")
    yield from _places("spec", spec)
    offered, counted = spec.get("devices") or [], spec.get("sharedCounters") or []
    if offered and counted:
        yield causes.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    advanced = any(each.get("taints") or each.get("consumesCounters") for each in offered)
    most = _ADVANCED_MAX if advanced else _DEVICES_MAX
    placed = bool(spec.get("perDeviceNodeSelection"))
    yield from devices.few(
        "spec.devices", offered, most, lambda at, each: _device(at, each, placed=placed)
    )
    yield from devices.once("spec.devices", [each.get("name", "") for each in offered])
    path = "spec.sharedCounters"
    yield from devices.few(path, counted, _COUNTER_SETS_MAX, _counter_set)
    yield from devices.once(path, [each.get("name", "") for each in counted])


def _pool(path: str, pool: Object) -> Causes:
    name, count = pool.get("name", ""), pool.get("resourceSliceCount", 0)
    if not name:
        yield causes.required(f"{path}.name")
    else:
        if len(name) > _POOL_MAX:
            yield causes.too_long(f"{path}.name", _POOL_MAX)
        for part in name.split("/"):
            yield from checks.subdomain(f"{path}.name", part)
    if count <= 0:
        yield causes.invalid(f"{path}.resourceSliceCount", count, checks.POSITIVE)
    generation = pool.get("generation", 0)
    if generation < 0:
        why = "must be greater than or equal to zero"
        yield causes.invalid(f"{path}.generation", generation, why)


def _places(path: str, spec: Object) -> Causes:
    """Where the devices of the slice are."""
    name = spec.get("nodeName")
    if name == "":
        why = "must be either unset or set to a non-empty string"
        yield causes.invalid(f"{path}.nodeName", name, why)
    elif name is not None:
        yield from checks.subdomain(f"{path}.nodeName", name)
    if "nodeSelector" in spec:
        yield from _one_term(f"{path}.nodeSelector", spec["nodeSelector"])
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field) is False:
            why = "must be either unset or set to true"
            yield causes.invalid(f"{path}.{field}", False, why)
    given = _given(spec, _PLACES)
    why = f"exactly one of {', '.join(f'`{field}`' for field in _PLACES)} is required"
    if not given:
        yield causes.required(path, why)
    elif len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        yield causes.invalid(path, shown, f"{why}, but multiple fields are set")


def _one_term(path: str, selector: Object) -> Causes:
    yield from validate_node_selector(path, selector)
    terms = selector.get("nodeSelectorTerms")
    if len(terms or ()) != 1:
        why = "must have exactly one node selector term"
        yield causes.invalid(f"{path}.nodeSelectorTerms", terms, why)


def _given(obj: Object, fields: tuple[str, ...]) -> list[str]:
    return [f"`{field}`" for field in fields if obj.get(field) not in (None, "", False)]


def _device(path: str, device: Object, *, placed: bool) -> Causes:
    yield from checks.label(f"{path}.name", device.get("name", ""))
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacity)
    if count > _PROPERTIES_MAX:
        why = f"the total number of attributes and capacities must not exceed {_PROPERTIES_MAX}"
        yield causes.invalid(path, count, why)
    for key, value in attributes.items():
        yield from devices.qualified_name(f"{path}.attributes", key)
        yield from _attribute(f"{path}.attributes[{key}]", value)
    for key, value in capacity.items():
        yield from devices.qualified_name(f"{path}.capacity", key)
        if "requestPolicy" in value and not device.get("allowMultipleAllocations"):
            why = "allowMultipleAllocations must be true"
            yield causes.forbidden(f"{path}.capacity[{key}].requestPolicy", why)
    taints = device.get("taints") or []
    yield from devices.few(f"{path}.taints", taints, _TAINTS_MAX, devices.taint)
    consumed = device.get("consumesCounters") or []
    yield from devices.few(f"{path}.consumesCounters", consumed, _CONSUMED_MAX, _consumption)
    sets = [each.get("counterSet", "") for each in consumed]
    yield from devices.once(f"{path}.consumesCounters", sets)
    yield from _own_place(path, device, placed=placed)
    yield from _binding(path, device)


def _attribute(path: str, attribute: Object) -> Causes:
    text, version = attribute.get("string", ""), attribute.get("version")
    if len(text.encode()) > _VALUE_MAX:
        yield causes.too_long(f"{path}.string", _VALUE_MAX)
    if version is not None and not _is_version(version):
        why = "must be a string compatible with semver.org spec 2.0.0"
        yield causes.invalid(f"{path}.version", version, why)
    if version is not None and len(version) > _VALUE_MAX:
        yield causes.too_long(f"{path}.version", _VALUE_MAX)
    if len(attribute) != 1:
        yield causes.invalid(path, attribute or "", "exactly one value must be specified")


def _consumption(path: str, consumed: Object) -> Causes:
    yield from _counters(path, "counterSet", consumed)


def _counter_set(path: str, offered: Object) -> Causes:
    yield from _counters(path, "name", offered)


def _counters(path: str, field: str, counter_set: Object) -> Causes:
    name, counters = counter_set.get(field, ""), counter_set.get("counters") or {}
    yield from checks.needed(f"{path}.{field}", name, names.label_problems)
    if not counters:
        yield causes.required(f"{path}.counters")
    elif len(counters) > _COUNTERS_MAX:
        yield causes.too_many(f"{path}.counters", len(counters), _COUNTERS_MAX)
    else:
        for key in counters:
            yield from checks.label(f"{path}.counters", key)


def _own_place(path: str, device: Object, *, placed: bool) -> Causes:
    if not placed:
        if any(field in device for field in _DEVICE_PLACES):
            why = (
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            )
            yield causes.invalid(path, None, why)
        return
    name = device.get("nodeName")
    if name == "":
        yield causes.invalid(f"{path}.nodeName", name, "must not be empty")
    elif name is not None:
        yield from checks.subdomain(f"{path}.nodeName", name)
    if "nodeSelector" in device:
        yield from validate_node_selector(f"{path}.nodeSelector", device["nodeSelector"])
    if device.get("allNodes") is False:
        yield causes.invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    given = _given(device, _DEVICE_PLACES)
    why = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
        "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    if not given:
        yield causes.required(path, why)
    elif len(given) > 1:
        yield causes.invalid(path, f"{{{', '.join(given)}}}", why)


def _binding(path: str, device: Object) -> Causes:
    """The conditions that must come, or must not, before a pod is bound."""
    wanted = device.get("bindingConditions") or []
    failures = device.get("bindingFailureConditions") or []
    at, bad = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    yield from devices.few(at, wanted, _CONDITIONS_MAX, checks.label_key)
    yield from devices.few(bad, failures, _CONDITIONS_MAX, checks.label_key)
    yield from devices.once(at, wanted)
    for index, name in enumerate(failures):
        if name in failures[:index]:
            yield causes.duplicate(f"{bad}[{index}]", name)
        if name in wanted:
            why = "bindingFailureConditions must not overlap with bindingConditions"
            yield causes.invalid(f"{bad}[{index}]", name, why)
    if failures and not wanted:
        why = "bindingConditions are required to use bindingFailureConditions"
        yield causes.invalid(at, None, why)
    if wanted and not failures:
        why = "bindingFailureConditions are required to use bindingConditions"
        yield causes.invalid(bad, None, why)
