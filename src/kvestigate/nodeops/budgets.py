"""Which pods a PodDisruptionBudget protects from eviction. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget


def held_back(pods: Sequence[Pod], budgets: Iterable[PodDisruptionBudget]) -> dict[str, str]:
    """Pod uid -> what its budget allows, for budgets that allow fewer evictions than planned."""
    reasons: dict[str, str] = {}
    for budget in budgets:
        meta, allowed = budget.metadata, budget.status.disruptions_allowed
        selector = from_label_selector(msgspec.to_builtins(budget.spec.selector))
        guarded = [
            pod.metadata.uid
            for pod in pods
            if pod.metadata.namespace == meta.namespace and selector.matches(pod.metadata.labels)
        ]
        if len(guarded) > allowed:
            reason = f"PodDisruptionBudget {meta.name} allows {allowed} of {len(guarded)} evictions"
            reasons |= dict.fromkeys(guarded, reason)
    return reasons
