"""Nodes: where pods run, as the nodes themselves report."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks, resource_names
from kvestigate.cluster.plane.kinds.podspec.defaults import round_amounts
from kvestigate.cluster.plane.kinds.podspec.scheduling import EFFECTS
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_KEPT = 'except from "" to valid'


class NodeKind(Kind):
    shares_on_update = True
    keeps_status_on_create = True
    status_carries_metadata = True
    selectable = (
        (
            "spec.unschedulable",
            lambda obj: "true" if obj["spec"].get("unschedulable") else "false",
        ),
    )

    def default(self, obj: Object) -> None:
        spec: Object = obj["spec"]
        status: Object = obj.setdefault("status", {})
        ranges, first = spec.get("podCIDRs") or [], spec.get("podCIDR")
        if first and ranges[:1] != [first]:  # what older clients know counts
            spec["podCIDRs"] = [first]
        elif ranges:
            spec["podCIDR"] = ranges[0]
        if "capacity" in status and "allocatable" not in status:
            status["allocatable"] = dict(status["capacity"])
        for field in ("capacity", "allocatable"):
            round_amounts(status.get(field) or {})
        # Kubelets no longer take their configuration from a ConfigMap.
        spec.pop("configSource", None)
        status.pop("config", None)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec, status = obj["spec"], obj["status"]
        yield from validate_taints("metadata.taints", spec.get("taints") or [])
        yield from _amounts(status)
        ranges = spec.get("podCIDRs") or []
        for index, value in enumerate(ranges):
            yield from checks.cidr(f"spec.podCIDRs[{index}]", value)
        if len(ranges) > 1:
            yield from _pair(ranges)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        spec, before = new["spec"], old["spec"]
        ranges = before.get("podCIDRs")
        if ranges and spec.get("podCIDRs") != ranges:
            yield causes.forbidden("spec.podCIDRs", f"node updates may not change podCIDR {_KEPT}")
        provider = before.get("providerID")
        if provider and spec.get("providerID") != provider:
            why = f"node updates may not change providerID {_KEPT}"
            yield causes.forbidden("spec.providerID", why)
        if spec.get("externalID") != before.get("externalID"):
            yield causes.forbidden("spec.externalID", "may not be updated")

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        return _amounts(new["status"])

    def warnings(self, obj: Object) -> list[str]:
        warnings = []
        if "configSource" in obj["spec"]:
            warnings.append("spec.configSource: the feature is removed")
        if "externalID" in obj["spec"]:
            warnings.append(
                "spec.externalID: this field is deprecated, and is unused by Kubernetes"
            )
        return warnings


def _pair(ranges: list[str]) -> Causes:
    """A node may have addresses for pods of each IP family, from one range each."""
    path = "spec.podCIDRs"
    versions = [getattr(checks.network(value), "version", 0) for value in ranges]
    if 0 in versions or len(ranges) > 2 or len(set(versions)) < len(ranges):
        why = "may specify no more than one CIDR for each IP family"
        yield causes.invalid(path, ranges, why)


def validate_taints(path: str, taints: list[Object]) -> Causes:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at, key, effect = f"{path}[{index}]", taint["key"], taint["effect"]
        yield from checks.label_key(f"{at}.key", key)
        value = taint.get("value", "")
        if problems := names.label_value_problems(value):
            yield causes.invalid(f"{at}.value", value, ";".join(problems))
        yield from checks.one_of(f"{at}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            yield causes.duplicate(at, taint, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def _amounts(status: Object) -> Causes:
    for field in ("capacity", "allocatable"):
        for name, amount in (status.get(field) or {}).items():
            yield from resource_names.validate_amount(f"status.{field}.{name}", name, amount)
