"""Deployments: how fast pods are replaced, and what must stay the same meanwhile. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import default_pod_template
from kvestigate.cluster.plane.kinds.workloads import amounts, shared
from kvestigate.cluster.plane.model.kind import Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes


class DeploymentKind(shared.Replicated):
    status_keeps = ("labels",)

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        strategy = spec["strategy"]
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        default_pod_template(spec["template"])

    def is_new_generation(self, new: Object, old: Object) -> bool:
        # Replica sets copy the annotations, so the controller must look at them.
        annotations = new["metadata"].get("annotations", {})
        changed = bool(annotations != old["metadata"].get("annotations", {}))
        return changed or super().is_new_generation(new, old)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _spec(obj["spec"])

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return [*_spec(new["spec"], old["spec"]), *self.validate_update(new, old, scene)]

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("spec", new["spec"], old["spec"], "selector")


def _spec(spec: Object, before: Object | None = None) -> Causes:
    yield from checks.not_negative("spec.replicas", spec["replicas"])
    yield from shared.validate_selector(spec, "deployment")
    yield from shared.validate_replicated_template(spec, before)
    yield from _strategy("spec.strategy", spec["strategy"])
    yield from checks.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    yield from checks.not_negative("spec.revisionHistoryLimit", spec["revisionHistoryLimit"])
    deadline = spec["progressDeadlineSeconds"]
    yield from checks.not_negative("spec.progressDeadlineSeconds", deadline)
    if deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        yield causes.invalid("spec.progressDeadlineSeconds", deadline, why)


def _strategy(path: str, strategy: Object) -> Causes:
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate":
        yield from _rolling(f"{path}.rollingUpdate", strategy["rollingUpdate"])
    elif strategy["type"] == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield causes.forbidden(f"{path}.rollingUpdate", why)
    else:
        yield causes.unsupported(path, strategy, ["Recreate", "RollingUpdate"])


def _rolling(path: str, rolling: Object) -> Causes:
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    yield from amounts.validate_amount(f"{path}.maxUnavailable", unavailable)
    yield from amounts.validate_amount(f"{path}.maxSurge", surge)
    if amounts.value(unavailable) == 0 and amounts.value(surge) == 0:
        why = "may not be 0 when `maxSurge` is 0"
        yield causes.invalid(f"{path}.maxUnavailable", unavailable, why)
    yield from amounts.validate_at_most_all(f"{path}.maxUnavailable", unavailable)
