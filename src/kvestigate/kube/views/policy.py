"""How much disruption a set of pods bears."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views.meta import Condition, LabelSelector, Metadata, View


class PodDisruptionBudgetSpec(View, frozen=True):
    """At most one of the two limits: a number of pods or a percentage."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"
    """`AlwaysAllow`: a pod that is not ready may be evicted whatever the budget says."""


class PodDisruptionBudgetStatus(View, frozen=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, datetime] = field(default_factory=dict)
    """Evictions under way, by pod name, since when."""
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
