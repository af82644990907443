"""PodDisruptionBudgets. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.workloads import amounts
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_COUNTERS = dict.fromkeys(
    ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), checks.not_negative
)
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class BudgetKind(Kind):
    has_plain_finalizers = True
    counts_generations = True
    status_carries_metadata = True
    updates_unconditionally = False

    def name_problems(self, name: str) -> list[str]:
        return names.path_segment_problems(name)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        both = ("minAvailable", "maxUnavailable")
        if all(name in spec for name in both):
            yield causes.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
        for name in both:
            if name in spec:
                yield from amounts.validate_amount(f"spec.{name}", spec[name])
                yield from amounts.validate_at_most_all(f"spec.{name}", spec[name])
        yield from checks.label_selector("spec.selector", spec.get("selector"))
        policy = spec.get("unhealthyPodEvictionPolicy", "AlwaysAllow")
        yield from checks.choice("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.fields("status", new["status"], _COUNTERS)
