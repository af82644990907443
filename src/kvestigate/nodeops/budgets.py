"""Which disruption budgets would hold pods back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget


def held_back(pods: Sequence[Pod], budgets: Iterable[PodDisruptionBudget]) -> dict[str, str]:
    """By a pod's uid, what its budget allows, where that is less than all that are to go."""
    found: dict[str, str] = {}
    for budget in budgets:
        meta, allowed = budget.metadata, budget.status.disruptions_allowed
        selector = from_label_selector(msgspec.to_builtins(budget.spec.selector))
        guarded = [
            pod.metadata.uid
            for pod in pods
            if pod.metadata.namespace == meta.namespace and selector.matches(pod.metadata.labels)
        ]
        if len(guarded) > allowed:
            so_many = f"{allowed} of {len(guarded)} go at present" if allowed else "none go now"
            found |= dict.fromkeys(guarded, f"the budget {meta.name} lets {so_many}")
    return found
