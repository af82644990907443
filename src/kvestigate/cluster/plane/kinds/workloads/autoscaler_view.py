"""HorizontalPodAutoscalers at version 1, which knows one metric only: the share of requested CPU.

What else version 2 says is carried in annotations, so that a client of version 1 does not lose it,
in kube-apiserver's form (`autoscaler_metrics`). Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds.view import View
from kvestigate.cluster.plane.kinds.workloads import autoscaler_metrics
from kvestigate.cluster.plane.kinds.workloads.autoscalers import DEFAULT_UTILIZATION, cpu_metric
from kvestigate.cluster.plane.model.kind import Object

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR = f"{_PREFIX}metrics", f"{_PREFIX}behavior"
_CURRENT, _CONDITIONS = f"{_PREFIX}current-metrics", f"{_PREFIX}conditions"
_CARRIED = {
    _METRICS: ("spec", "metrics"),
    _BEHAVIOR: ("spec", "behavior"),
    _CURRENT: ("status", "currentMetrics"),
    _CONDITIONS: ("status", "conditions"),
}
_TO_V2: dict[str, Callable[[Any], Any]] = {
    _METRICS: autoscaler_metrics.metrics_to_v2,
    _BEHAVIOR: autoscaler_metrics.behavior_to_v2,
    _CURRENT: partial(autoscaler_metrics.metrics_to_v2, status=True),
}
_KEPT = {
    "spec": ("scaleTargetRef", "minReplicas", "maxReplicas"),
    "status": ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"),
}


class AutoscalerV1(View):
    def to_stored(self, obj: Object) -> Object:
        stored = self._converted(obj, obj["metadata"].get("annotations") or {})
        if self.stored.problems(stored):  # an annotation holds something else
            stored = self._converted(obj, {})
        return self.stored.normalised(stored)

    def _converted(self, obj: Object, annotations: dict[str, str]) -> Object:
        stored = {
            **obj,
            "apiVersion": self.stored.resource.api_version,
            "metadata": _annotated(obj, {}),
            **{part: _pick(obj[part], names) for part, names in _KEPT.items()},
        }
        current = obj["status"].get("currentCPUUtilizationPercentage")
        if current is not None:
            resource = {"name": "cpu", "current": {"averageUtilization": current}}
            stored["status"]["currentMetrics"] = [{"type": "Resource", "resource": resource}]
        for key, (part, field) in _CARRIED.items():
            if value := _parse(annotations.get(key)):
                stored[part][field] = _TO_V2[key](value) if key in _TO_V2 else value
        percent = obj["spec"].get("targetCPUUtilizationPercentage")
        metrics = stored["spec"].get("metrics") or []
        if isinstance(metrics, list) and (percent is not None or not metrics):
            wanted = DEFAULT_UTILIZATION if percent is None else percent
            stored["spec"]["metrics"] = [*metrics, cpu_metric(wanted)]
        return stored

    def from_stored(self, obj: Object) -> Object:
        shown = {part: _pick(obj[part], names) for part, names in _KEPT.items()}
        shown["status"].setdefault("currentReplicas", 0)
        metrics = obj["spec"].get("metrics") or []
        for metric in reversed(
            [candidate for candidate in metrics if _is_cpu_share(candidate, "target")]
        ):
            percent = metric["resource"]["target"]["averageUtilization"]
            shown["spec"]["targetCPUUtilizationPercentage"] = percent
        for metric in obj["status"].get("currentMetrics") or ():
            if _is_cpu_share(metric, "current"):
                percent = metric["resource"]["current"]["averageUtilization"]
                shown["status"]["currentCPUUtilizationPercentage"] = percent
        others = [metric for metric in metrics if not _is_cpu_share(metric, "target")]
        current = obj["status"].get("currentMetrics") or []
        carried = {
            _METRICS: autoscaler_metrics.metrics_to_v1(others),
            _CURRENT: autoscaler_metrics.metrics_to_v1(current, status=True),
            _BEHAVIOR: autoscaler_metrics.behavior_to_v1(obj["spec"].get("behavior")),
            _CONDITIONS: obj["status"].get("conditions"),
        }
        version = {"apiVersion": self.resource.api_version}
        return {**obj, **version, "metadata": _annotated(obj, carried), **shown}


def _pick(obj: Object, names: tuple[str, ...]) -> Object:
    return {name: obj[name] for name in names if name in obj}


def _parse(text: str | None) -> Any:
    """The JSON in an annotation; None if users wrote something else into it."""
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None


def _annotated(obj: Object, carried: dict[str, Any]) -> Object:
    """The metadata with these annotations, and no other of those that carry v2 fields."""
    meta: Object = dict(obj["metadata"])
    given = meta.pop("annotations", None) or {}
    kept = {key: text for key, text in given.items() if key not in _CARRIED}
    kept |= {key: msgspec.json.encode(value).decode() for key, value in carried.items() if value}
    return {**meta, "annotations": kept} if kept else meta


def _is_cpu_share(metric: Object, field: str) -> bool:
    resource = metric.get("resource") or {}
    return resource.get("name") == "cpu" and "averageUtilization" in resource.get(field, ())
