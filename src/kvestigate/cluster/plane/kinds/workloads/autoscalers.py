"""HorizontalPodAutoscalers, at the version in which they are kept. Pure."""

from __future__ import annotations

from copy import deepcopy

from kvestigate.cluster.plane.kinds import checks, resource_names
from kvestigate.cluster.plane.kinds.checks import POSITIVE
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Causes

DEFAULT_UTILIZATION = 80
_PERIOD_MAX, _WINDOW_MAX = 1800, 3600
_COUNTERS = dict.fromkeys(("currentReplicas", "desiredReplicas"), checks.not_negative)
_SELECTIONS = ("Disabled", "Max", "Min")
_POLICIES = ("Percent", "Pods")
_TARGETS = ("Utilization", "Value", "AverageValue")
# The field that each type of metric fills in, in the order in which the server looks at them.
_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_UP: Object = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Object = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class AutoscalerKind(Kind):
    status_carries_metadata = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            spec["metrics"] = [cpu_metric(DEFAULT_UTILIZATION)]
        behavior = spec.get("behavior")
        if behavior is not None:
            behavior["scaleUp"] = {**deepcopy(_UP), **(behavior.get("scaleUp") or {})}
            behavior["scaleDown"] = {**deepcopy(_DOWN), **(behavior.get("scaleDown") or {})}

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        return [*_bounds(spec), *_target(spec), *_rest(spec)]

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        spec = new["spec"]
        known = _aim(new) == _aim(old)
        return [*_bounds(spec), *_target(spec, known=known), *_rest(spec)]

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.fields("status", new["status"], _COUNTERS)


def cpu_metric(percent: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _aim(obj: Object) -> tuple[str | None, str | None]:
    target = obj["spec"]["scaleTargetRef"]
    return target.get("apiVersion"), target.get("kind")


def _bounds(spec: Object) -> Causes:
    least, most = spec["minReplicas"], spec.get("maxReplicas", 0)
    if least < 1:
        yield causes.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield causes.required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield causes.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if most < least:
        why = "must be greater than or equal to `minReplicas`"
        yield causes.invalid("spec.maxReplicas", most, why)


def _target(spec: Object, *, known: bool = False) -> Causes:
    reference = spec["scaleTargetRef"]
    core = reference.get("kind") == "ReplicationController"
    yield from _reference("spec.scaleTargetRef", reference, core=core, known=known)


def _reference(path: str, reference: Object, *, core: bool, known: bool = False) -> Causes:
    """`core`: what it names may be in the core group; `known`: it was accepted before."""
    for field in ("kind", "name"):
        yield from checks.path_segment(f"{path}.{field}", reference.get(field, ""))
    version = reference.get("apiVersion", "")
    if known:
        return
    if version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
        yield causes.invalid(f"{path}.apiVersion", version, why)
    elif "/" not in version and not core:
        why = "apiVersion must specify API group"
        yield causes.invalid(f"{path}.apiVersion", version, why)


def _rest(spec: Object) -> Causes:
    metrics = spec["metrics"]
    for index, metric in enumerate(metrics):
        yield from _metric(f"spec.metrics[{index}]", metric)
    if spec["minReplicas"] == 0 and not any(
        metric["type"] in ("Object", "External") for metric in metrics
    ):
        why = (
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas"
        )
        yield causes.forbidden("spec.metrics", why)
    for name in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(name)
        if rules is not None:
            yield from _rules(f"spec.behavior.{name}", rules)


def _rules(path: str, rules: Object) -> Causes:
    window = rules.get("stabilizationWindowSeconds", 0)
    at = f"{path}.stabilizationWindowSeconds"
    if window < 0:
        yield causes.invalid(at, window, "must be greater than or equal to zero")
    if window > _WINDOW_MAX:
        yield causes.invalid(at, window, f"must be less than or equal to {_WINDOW_MAX}")
    if rules.get("selectPolicy", "Max") not in _SELECTIONS:
        yield causes.unsupported(f"{path}.selectPolicy", rules["selectPolicy"], _SELECTIONS)
    policies = rules.get("policies") or []
    if not policies:
        yield causes.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        yield from _policy(f"{path}.policies[{index}]", policy)
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantities.parse(tolerance).nanos < 0:
        yield causes.invalid(f"{path}.tolerance", tolerance, checks.NOT_NEGATIVE)


def _policy(path: str, policy: Object) -> Causes:
    yield from checks.choice(f"{path}.type", policy["type"], _POLICIES)
    for name in ("value", "periodSeconds"):
        if policy[name] <= 0:
            yield causes.invalid(f"{path}.{name}", policy[name], POSITIVE)
    if policy["periodSeconds"] > _PERIOD_MAX:
        why = f"must be less than or equal to {_PERIOD_MAX}"
        yield causes.invalid(f"{path}.periodSeconds", policy["periodSeconds"], why)


def _metric(path: str, metric: Object) -> Causes:
    kind = metric.get("type", "")
    types = sorted(_SOURCES)
    if not kind:
        yield causes.required(f"{path}.type", "must specify a metric source type")
    present = [name for name in _SOURCES.values() if name in metric]
    if present:
        yield from _source(f"{path}.{present[0]}", present[0], metric[present[0]])
    expected = _SOURCES.get(kind, "")
    if kind not in _SOURCES:
        yield causes.unsupported(f"{path}.type", kind, types)
    elif expected not in metric:
        why = "must populate information for the given metric source"
        yield causes.required(f"{path}.{expected}", why)
    if len(present) != 1:
        for name in present:
            if name != expected:
                why = "must populate the given metric source only"
                yield causes.forbidden(f"{path}.{name}", why)


def _source(path: str, kind: str, source: Object) -> Causes:
    if kind == "object":
        yield from _reference(f"{path}.describedObject", source["describedObject"], core=True)
    if kind in ("resource", "containerResource"):
        yield from _resource(path, kind, source)
    else:
        yield from _identifier(f"{path}.metric", source["metric"])
    yield from _metric_target(f"{path}.target", source["target"])
    yield from _combination(f"{path}.target", kind, source["target"])


def _resource(path: str, kind: str, source: Object) -> Causes:
    name, container = source.get("name", ""), source.get("container", "")
    if not name:
        yield causes.required(f"{path}.name", "must specify a resource name")
    elif kind == "containerResource":
        yield from resource_names.validate_container_name(f"{path}.name", name)
    if kind == "containerResource":
        if container:
            yield from checks.label(f"{path}.container", container)
        else:
            yield causes.required(f"{path}.container", "must specify a container")


def _identifier(path: str, metric: Object) -> Causes:
    name = metric.get("name", "")
    if not name:
        yield causes.required(f"{path}.name", "must specify a metric name")
    else:
        yield from checks.each(f"{path}.name", name, names.path_segment_problems(name))


def _metric_target(path: str, target: Object) -> Causes:
    kind = target.get("type", "")
    if not kind:
        yield causes.required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        why = "must be either Utilization, Value, or AverageValue"
        yield causes.invalid(f"{path}.type", kind, why)
    for name in ("value", "averageValue"):
        if name in target and quantities.parse(target[name]).nanos <= 0:
            yield causes.invalid(f"{path}.{name}", target[name], "must be positive")
    if target.get("averageUtilization", 1) < 1:
        used = target["averageUtilization"]
        yield causes.invalid(f"{path}.averageUtilization", used, "must be greater than 0")


def _combination(path: str, kind: str, target: Object) -> Causes:
    """Which of the three numbers a type of metric needs."""
    value, average = "value" in target, "averageValue" in target
    utilization = "averageUtilization" in target
    if kind == "pods" and not average:
        why = "must specify a positive target averageValue"
        yield causes.required(f"{path}.averageValue", why)
    elif kind == "object" and not value and not average:
        why = "must set either a target value or averageValue"
        yield causes.required(f"{path}.averageValue", why)
    elif kind == "external":
        if not value and not average:
            why = "must set either a target value for metric or a per-pod target"
            yield causes.required(f"{path}.averageValue", why)
        if value and average:
            why = "may not set both a target value for metric and a per-pod target"
            yield causes.forbidden(f"{path}.value", why)
    elif kind in ("resource", "containerResource"):
        if not utilization and not average:
            why = "must set either a target raw value or a target utilization"
            yield causes.required(f"{path}.averageUtilization", why)
        if utilization and average:
            why = "may not set both a target raw value and a target utilization"
            yield causes.forbidden(f"{path}.averageValue", why)
