"""PodDisruptionBudgets. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    judges_step = False
    judges_whole = False
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
        status = new["status"]
        yield from validate_conditions("status.conditions", status.get("conditions") or ())
        yield from checks.fields("status", status, _COUNTERS)


_CONDITION_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_NO_REASON = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
    f"used for validation is '{_REASON}')"
)
_REASON_MAX, _MESSAGE_MAX = 1024, 32 * 1024


def validate_conditions(path: str, conditions: Sequence[Object]) -> Causes:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, kind = f"{path}[{index}]", condition.get("type", "")
        if kind in seen:
            yield causes.duplicate(f"{where}.type", kind)
        seen.add(kind)
        yield from _condition(where, condition)


def _condition(path: str, condition: Object) -> Causes:
    yield from checks.label_key(f"{path}.type", condition.get("type", ""))
    status = condition.get("status", "")
    yield from checks.choice(f"{path}.status", status, _CONDITION_STATUSES)
    if (generation := condition.get("observedGeneration", 0)) < 0:
        why = "must be greater than or equal to zero"
        yield causes.invalid(f"{path}.observedGeneration", generation, why)
    if not condition.get("lastTransitionTime"):
        yield causes.required(f"{path}.lastTransitionTime")
    yield from _reason(f"{path}.reason", condition.get("reason", ""))
    if len(condition.get("message", "")) > _MESSAGE_MAX:
        yield causes.too_long(f"{path}.message", _MESSAGE_MAX)


def _reason(path: str, reason: str) -> Causes:
    if not reason:
        yield causes.required(path)
        return
    if not _is_reason(reason):
        yield causes.invalid(path, reason, _NO_REASON)
    if len(reason) > _REASON_MAX:
        yield causes.too_long(path, _REASON_MAX)
