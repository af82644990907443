"""DaemonSets. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import default_pod_template, validate_pod_template
from kvestigate.cluster.plane.kinds.workloads import amounts, shared
from kvestigate.cluster.plane.model.kind import Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation: what was once a field of the spec counts the changes of the template."""


class DaemonSetKind(shared.Workload):
    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        strategy = spec["updateStrategy"]
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        elif "rollingUpdate" in strategy:
            # The server's own type has no way to leave these out.
            strategy["rollingUpdate"].setdefault("maxUnavailable", 0)
            strategy["rollingUpdate"].setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)
        default_pod_template(spec["template"])
        # The field that counts is gone from the API; the count lives on as an annotation.
        _set_template_generation(obj, _template_generation(obj))

    def on_create(self, obj: Object, scene: Scene) -> None:
        _set_template_generation(obj, max(1, _template_generation(obj)))

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        count = _template_generation(old)
        if not shared.is_status(scene):
            count += new["spec"]["template"] != old["spec"]["template"]
        _set_template_generation(new, count)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        yield from checks.label_selector("spec.selector", spec.get("selector"))
        selector = shared.parse_selector(spec.get("selector"))
        if selector is not None and not selector.matches(shared.template_labels(spec) or {}):
            path = "spec.template.metadata.labels"
            yield causes.invalid(path, shared.template_labels(spec), shared.MISMATCH)
        if selector is not None and selector.selects_everything:
            why = "empty selector is invalid for daemonset"
            yield causes.invalid("spec.selector", spec["selector"], why)
        yield from validate_pod_template(spec["template"], "spec.template")
        yield from shared.validate_runs_forever(spec, "DaemonSet")
        yield from checks.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
        yield from _strategy("spec.updateStrategy", spec["updateStrategy"])
        yield from checks.not_negative("spec.revisionHistoryLimit", spec["revisionHistoryLimit"])

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        yield from self.validate_update(new, old, scene)
        yield from self.validate(new, scene)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("spec", new["spec"], old["spec"], "selector")

    def warnings(self, obj: Object) -> list[str]:
        return self.template_warnings(obj)

    def update_warnings(self, new: Object, old: Object) -> list[str]:
        changed = _template_generation(new) != _template_generation(old)
        return self.template_warnings(new) if changed else []


def _template_generation(obj: Object) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    return int(text) if text.isascii() and text.isdecimal() else 0


def _set_template_generation(obj: Object, count: int) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {**annotations, TEMPLATE_GENERATION: str(count)}


def _strategy(path: str, strategy: Object) -> Causes:
    if strategy["type"] == "RollingUpdate":
        yield from _rolling(f"{path}.rollingUpdate", strategy["rollingUpdate"])
    elif strategy["type"] != "OnDelete":
        yield causes.unsupported(path, strategy, ["RollingUpdate", "OnDelete"])


def _rolling(path: str, rolling: Object) -> Causes:
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    yield from amounts.validate_amount(f"{path}.maxUnavailable", unavailable)
    yield from amounts.validate_amount(f"{path}.maxSurge", surge)
    yield from amounts.validate_at_most_all(f"{path}.maxUnavailable", unavailable)
    yield from amounts.validate_at_most_all(f"{path}.maxSurge", surge)
    if amounts.value(unavailable) and amounts.value(surge):
        why = "may not be set when maxUnavailable is non-zero"
        yield causes.invalid(f"{path}.maxSurge", surge, why)
    elif not amounts.value(unavailable) and not amounts.value(surge):
        yield causes.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
