"""Metrics and behavior of autoscalers as the annotations of version 1 hold them. Pure.

The form is kube-apiserver's: manifests for version 1 that name metrics in annotations are still
about. In a status, what version 1 calls `target...` it calls `current...`, and so does version 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvestigate.cluster.plane.model.kind import Object

Paths = tuple[tuple[str, tuple[str, ...]], ...]
"""Where version 1 keeps a field of a metric, and where version 2 does."""

_NAME, _SELECTOR, _AVERAGE = ("metric", "name"), ("metric", "selector"), ("target", "averageValue")
_RESOURCE: Paths = (
    ("name", ("name",)),
    ("targetAverageUtilization", ("target", "averageUtilization")),
    ("targetAverageValue", _AVERAGE),
)
_SPEC: dict[str, Paths] = {
    "object": (
        ("target", ("describedObject",)),
        ("metricName", _NAME),
        ("targetValue", ("target", "value")),
        ("selector", _SELECTOR),
        ("averageValue", _AVERAGE),
    ),
    "pods": (("metricName", _NAME), ("targetAverageValue", _AVERAGE), ("selector", _SELECTOR)),
    "resource": _RESOURCE,
    "containerResource": (*_RESOURCE, ("container", ("container",))),
    "external": (
        ("metricName", _NAME),
        ("metricSelector", _SELECTOR),
        ("targetValue", ("target", "value")),
        ("targetAverageValue", _AVERAGE),
    ),
}
_STATUS: dict[str, Paths] = {
    kind: tuple(
        (
            name if name == "target" else name.replace("target", "current", 1),
            tuple("current" if step == "target" else step for step in path),
        )
        for name, path in paths
    )
    for kind, paths in _SPEC.items()
}
_ALWAYS = {
    "object": ("targetValue", "currentValue"),
    "pods": ("targetAverageValue", "currentAverageValue"),
    "resource": ("currentAverageValue",),
    "containerResource": ("currentAverageValue",),
    "external": ("currentValue",),
}
"""What version 1 cannot leave out."""
_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")


def metrics_to_v1(metrics: list[Object], *, status: bool = False) -> list[Object]:
    return [_to_v1(metric, _STATUS if status else _SPEC) for metric in metrics]


def metrics_to_v2(metrics: Any, *, status: bool = False) -> Any:
    """The metrics in an annotation; what is no list of them stays what it is."""
    if not isinstance(metrics, list) or not all(isinstance(each, dict) for each in metrics):
        return metrics
    return [_to_v2(metric, _STATUS if status else _SPEC, aims=not status) for metric in metrics]


def _to_v1(metric: Object, sources: dict[str, Paths]) -> Object:
    shown: Object = {"type": metric["type"]}
    for kind in filter(metric.__contains__, sources):
        source: Object = {}
        for name, path in sources[kind]:
            value = metric[kind]
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None or name in _ALWAYS[kind]:
                source[name] = "0" if value is None else value
        shown[kind] = source
    return shown


def _to_v2(metric: Object, sources: dict[str, Paths], *, aims: bool) -> Object:
    stored: Object = {"type": metric.get("type", "")}
    for kind, paths in sources.items():
        if not isinstance(given := metric.get(kind), dict):
            continue
        source: Object = {}
        for name, path in paths:
            if name in given:
                at = source
                for step in path[:-1]:
                    at = at.setdefault(step, {})
                at[path[-1]] = given[name]
        if aims:
            _aim(kind, source)
        stored[kind] = source
    return stored


def _aim(kind: str, source: Object) -> None:
    """Set the `type` of a metric's target, which version 1 does not have."""
    target = source.get("target", {})
    if kind == "object" and "averageValue" in target and target.get("value") == "0":
        del target["value"]
    aim = "AverageValue"
    if kind in ("resource", "containerResource"):
        aim = "Utilization" if "averageUtilization" in target else aim
    elif kind != "pods" and "value" in target and "averageValue" not in target:
        aim = "Value"
    source["target"] = {"type": aim, **target}


def behavior_to_v1(behavior: Object | None) -> Object | None:
    """With the field names of kube-apiserver's own type."""
    if behavior is None:
        return None
    rules = {name: behavior.get(name) for name in ("scaleUp", "scaleDown")}
    return {
        _upper(name): rule and {_upper(field): _upper_policies(rule.get(field)) for field in _RULES}
        for name, rule in rules.items()
    }


def _upper_policies(value: Any) -> Any:
    return _renamed(value, _upper) if isinstance(value, list) else value


def behavior_to_v2(behavior: Any) -> Any:
    return _renamed(behavior, _lower)


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    """A value of JSON with its keys renamed, and without nulls."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if each is not None}
        return {rename(key): _renamed(each, rename) for key, each in kept.items()}
    return [_renamed(each, rename) for each in value] if isinstance(value, list) else value
