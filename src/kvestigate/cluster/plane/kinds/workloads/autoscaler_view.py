"""HorizontalPodAutoscalers at version 1, which knows only one metric: the rest of what version 2
says goes into annotations, and comes back from them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds.view import View
from kvestigate.cluster.plane.kinds.workloads.autoscalers import DEFAULT_UTILIZATION, cpu_metric
from kvestigate.cluster.plane.model.kind import Object

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
STATUSES = f"{_PREFIX}current-metrics"
CONDITIONS = f"{_PREFIX}conditions"
BEHAVIOR = f"{_PREFIX}behavior"

_KEPT_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_KEPT_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")

Paths = tuple[tuple[str, tuple[str, ...]], ...]
"""Where version 1 keeps a field, and where version 2 does. In a status, what the one calls
`target...` and `target` the other calls `current...` and `current`."""

_NAME, _SELECTOR = ("metric", "name"), ("metric", "selector")
_SOURCES: dict[str, Paths] = {
    "object": (
        ("target", ("describedObject",)),
        ("metricName", _NAME),
        ("targetValue", ("target", "value")),
        ("selector", _SELECTOR),
        ("averageValue", ("target", "averageValue")),
    ),
    "pods": (
        ("metricName", _NAME),
        ("targetAverageValue", ("target", "averageValue")),
        ("selector", _SELECTOR),
    ),
    "resource": (
        ("name", ("name",)),
        ("targetAverageUtilization", ("target", "averageUtilization")),
        ("targetAverageValue", ("target", "averageValue")),
    ),
    "containerResource": (
        ("name", ("name",)),
        ("targetAverageUtilization", ("target", "averageUtilization")),
        ("targetAverageValue", ("target", "averageValue")),
        ("container", ("container",)),
    ),
    "external": (
        ("metricName", _NAME),
        ("metricSelector", _SELECTOR),
        ("targetValue", ("target", "value")),
        ("targetAverageValue", ("target", "averageValue")),
    ),
}
_STATUS_SOURCES: dict[str, Paths] = {
    kind: tuple(
        (
            name if name == "target" else name.replace("target", "current", 1),
            tuple("current" if step == "target" else step for step in path),
        )
        for name, path in paths
    )
    for kind, paths in _SOURCES.items()
}
# Version 1 cannot leave these out.
_ALWAYS = {
    "object": ("targetValue", "currentValue"),
    "pods": ("targetAverageValue", "currentAverageValue"),
    "resource": ("currentAverageValue",),
    "containerResource": ("currentAverageValue",),
    "external": ("currentValue",),
}


class AutoscalerV1(View):
    def to_stored(self, obj: Object) -> Object:
        annotations = dict(obj["metadata"].get("annotations") or {})
        spec = _pick(obj["spec"], _KEPT_SPEC)
        found = _parse(annotations.get(METRICS), list)
        spec["metrics"] = [_to_v2(metric, _SOURCES, _aimed) for metric in found or ()]
        percent = obj["spec"].get("targetCPUUtilizationPercentage")
        if percent is not None or not spec["metrics"]:
            wanted = DEFAULT_UTILIZATION if percent is None else percent
            spec["metrics"].append(cpu_metric(wanted))
        if behavior := _parse(annotations.get(BEHAVIOR), dict):
            spec["behavior"] = _renamed(behavior, _lower)
        status = _status_to_v2(obj["status"], annotations)
        stored = {**obj, "apiVersion": self.stored.resource.api_version}
        return {**stored, "metadata": _annotated(obj, {}), "spec": spec, "status": status}

    def from_stored(self, obj: Object) -> Object:
        before, status = obj["spec"], obj["status"]
        spec, kept = _pick(before, _KEPT_SPEC), _pick(status, _KEPT_STATUS)
        metrics = before.get("metrics") or []
        used = [it for it in metrics if _is_cpu_share(it)]
        if used:
            percent = used[0]["resource"]["target"]["averageUtilization"]
            spec["targetCPUUtilizationPercentage"] = percent
        for metric in status.get("currentMetrics") or ():
            current = (metric.get("resource") or {}).get("current") or {}
            if _is_cpu(metric) and "averageUtilization" in current:
                kept["currentCPUUtilizationPercentage"] = current["averageUtilization"]
        carried: dict[str, Any] = {
            METRICS: [_to_v1(it, _SOURCES) for it in metrics if not _is_cpu_share(it)],
            STATUSES: [_to_v1(it, _STATUS_SOURCES) for it in status.get("currentMetrics") or ()],
            BEHAVIOR: _internal_behavior(before.get("behavior")),
            CONDITIONS: status.get("conditions"),
        }
        shown = {**obj, "apiVersion": self.resource.api_version}
        kept.setdefault("currentReplicas", 0)
        return {**shown, "metadata": _annotated(obj, carried), "spec": spec, "status": kept}


def _pick(obj: Object, names: tuple[str, ...]) -> Object:
    return {name: obj[name] for name in names if name in obj}


def _parse(text: str | None, type_: type[Any]) -> Any:
    """The JSON in an annotation; None if users wrote something else into it."""
    try:
        return msgspec.json.decode(text, type=type_) if text else None
    except msgspec.DecodeError:
        return None


def _annotated(obj: Object, carried: dict[str, Any]) -> Object:
    """The metadata with these annotations, and no other of those that carry v2 fields."""
    meta: Object = dict(obj["metadata"])
    own = (METRICS, STATUSES, CONDITIONS, BEHAVIOR)
    given = meta.pop("annotations", None) or {}
    kept = {key: text for key, text in given.items() if key not in own}
    kept |= {key: msgspec.json.encode(it).decode() for key, it in carried.items() if it}
    if kept:
        meta["annotations"] = kept
    return meta


def _is_cpu(metric: Object) -> bool:
    return metric["type"] == "Resource" and (metric.get("resource") or {}).get("name") == "cpu"


def _is_cpu_share(metric: Object) -> bool:
    return _is_cpu(metric) and "averageUtilization" in metric["resource"]["target"]


def _to_v1(metric: Object, sources: dict[str, Paths]) -> Object:
    shown: Object = {"type": metric["type"]}
    for kind, paths in sources.items():
        if kind not in metric:
            continue
        source: Object = {}
        for name, path in paths:
            value = _get(metric[kind], path)
            if value is None and name in _ALWAYS.get(kind, ()):
                value = "0"
            if value is not None:
                source[name] = value
        shown[kind] = source
    return shown


def _to_v2(
    metric: Object, sources: dict[str, Paths], finish: Callable[[str, Object], None] | None = None
) -> Object:
    stored: Object = {"type": metric.get("type", "")}
    for kind, paths in sources.items():
        if not isinstance(metric.get(kind), dict):
            continue
        source: Object = {}
        for name, path in paths:
            if name in metric[kind]:
                _put(source, path, metric[kind][name])
        if finish:
            finish(kind, source)
        stored[kind] = source
    return stored


def _aimed(kind: str, source: Object) -> None:
    """Set the `type` of a metric target, which v1 does not have."""
    target = source.setdefault("target", {})
    if kind in ("resource", "containerResource"):
        type_ = "Utilization" if "averageUtilization" in target else "AverageValue"
    elif kind == "object" and "averageValue" in target:
        type_ = "AverageValue"
        if target.get("value") == "0":
            del target["value"]
    elif kind == "pods" or "value" not in target:
        type_ = "AverageValue"
    else:
        type_ = "Value"
    source["target"] = {"type": type_, **target}


def _get(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _put(obj: Object, path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        obj = obj.setdefault(step, {})
    obj[path[-1]] = value


def _status_to_v2(status: Object, annotations: dict[str, str]) -> Object:
    stored = _pick(status, _KEPT_STATUS)
    percent = status.get("currentCPUUtilizationPercentage")
    metrics: list[Object] = []
    if percent is not None:
        current = {"averageUtilization": percent}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    found = _parse(annotations.get(STATUSES), list)
    if found is not None:
        metrics = [_to_v2(metric, _STATUS_SOURCES) for metric in found]
    stored["currentMetrics"] = metrics or None
    if conditions := _parse(annotations.get(CONDITIONS), list):
        stored["conditions"] = conditions
    return stored


def _internal_behavior(behavior: Object | None) -> Object | None:
    """`behavior` as the annotation holds it: with the field names of kube-apiserver's Go type."""
    if behavior is None:
        return None
    return {_upper(name): _internal_rules(behavior.get(name)) for name in ("scaleUp", "scaleDown")}


def _internal_rules(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    names = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
    shown: Object = {_upper(name): rules.get(name) for name in names}
    policies = rules.get("policies")
    shown["Policies"] = policies and [_renamed(policy, _upper) for policy in policies]
    return shown


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    """A value of JSON with its keys renamed, and without nulls."""
    if isinstance(value, dict):
        return {rename(key): _renamed(it, rename) for key, it in value.items() if it is not None}
    return [_renamed(it, rename) for it in value] if isinstance(value, list) else value
