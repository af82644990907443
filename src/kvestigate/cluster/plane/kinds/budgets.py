"""PodDisruptionBudgets. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import amounts, checks, workloads
from kvestigate.cluster.plane.kinds.checks import Causes
from kvestigate.cluster.plane.kinds.conditions import validate_conditions
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause

_COUNTERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class BudgetKind(Kind):
    judges_step = False
    judges_whole = False
    has_plain_finalizers = True
    counts_generations = True
    status_carries_metadata = True
    updates_unconditionally = False

    def name_problems(self, name: str) -> list[str]:
        return names.path_segment_problems(name)

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(_spec(obj["spec"]))

    def validate_status(self, new: Object, old: Object, scene: Scene) -> list[Cause]:
        status = new["status"]
        conditions = validate_conditions("status.conditions", status.get("conditions") or ())
        return [*conditions, *workloads.validate_counters(status, _COUNTERS)]


def _spec(spec: Object) -> Causes:
    both = ("minAvailable", "maxUnavailable")
    if all(name in spec for name in both):
        yield causes.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for name in both:
        if name in spec:
            yield from amounts.validate_amount(f"spec.{name}", spec[name])
            yield from amounts.validate_at_most_all(f"spec.{name}", spec[name])
    yield from checks.label_selector("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy", "AlwaysAllow")
    if policy not in _EVICTION_POLICIES:
        yield causes.unsupported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)
