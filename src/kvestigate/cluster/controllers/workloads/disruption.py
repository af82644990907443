"""PodDisruptionBudgets: how many more pods may be evicted now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate.client.cache import Change, Key, key_of
from kvestigate.cluster.controllers import conditions, owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import (
    BUDGETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from kvestigate.cluster.controllers.pods import is_leaving, is_ready
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.times import earliest, seconds, stamp
from kvestigate.cluster.controllers.workloads.rollout import scaled
from kvestigate.kube.selectors import LabelSelector
from kvestigate.kube.views.meta import Condition
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget, PodDisruptionBudgetStatus

ALLOWED = "DisruptionAllowed"
_PATIENCE = 120.0
"""Seconds in which an eviction must lead to a deletion, or it has not happened."""


@dataclass(frozen=True, slots=True)
class Decision:
    status: PodDisruptionBudgetStatus
    pause: float | None = None


def decide(budget: PodDisruptionBudget, pods: Sequence[Pod], wanted: int, now: float) -> Decision:
    """`wanted` is how many pods the owners of these want in all."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = wanted
        desired = max(0, expected - scaled(spec.max_unavailable, expected, up=True))
    elif isinstance(spec.min_available, str):
        expected = wanted
        desired = scaled(spec.min_available, expected, up=True)
    else:
        expected, desired = len(pods), spec.min_available or 0
    by_name = {pod.metadata.name: pod for pod in pods}
    evicted = {
        name: at
        for name, at in budget.status.disrupted_pods.items()
        if seconds(at) + _PATIENCE > now
        and (pod := by_name.get(name)) is not None
        and not is_leaving(pod)
    }
    healthy = sum(
        is_ready(pod) and not is_leaving(pod) and pod.metadata.name not in evicted for pod in pods
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    reason = "SufficientPods" if allowed else "InsufficientPods"
    verdict = Condition(ALLOWED, "True" if allowed else "False", reason, "", stamp(now))
    status = PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        disrupted_pods=evicted,
        conditions=conditions.put(budget.status.conditions, verdict),
    )
    return Decision(status, earliest(*(seconds(at) + _PATIENCE - now for at in evicted.values())))


class DisruptionController(Reconciler[PodDisruptionBudget]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, BUDGETS)
        self._pods = context.watch(PODS, self._of_pod)
        self._replica_sets = context.cache(REPLICA_SETS)
        self._deployments = context.watch(DEPLOYMENTS, self._in_namespace)
        self._stateful_sets = context.watch(STATEFUL_SETS, self._in_namespace)
        self._replication_controllers = context.watch(REPLICATION_CONTROLLERS, self._in_namespace)

    def _of_pod(self, change: Change[Pod]) -> Iterable[Key]:
        for budget in self._objects.find(owners.NAMESPACE, change.key.namespace):
            selector = _selector(budget)
            if any(selector.matches(pod.metadata.labels) for pod in change.views):
                yield change.key.sibling(budget.metadata.name)

    def _in_namespace(self, change: Change[Any]) -> Iterable[Key]:
        """A changed size may change what is expected."""
        for budget in self._objects.find(owners.NAMESPACE, change.key.namespace):
            yield change.key.sibling(budget.metadata.name)

    async def _reconcile(self, budget: PodDisruptionBudget) -> float | None:
        key = key_of(budget)
        selector = _selector(budget)
        pods = [
            pod
            for pod in self._pods.find(owners.NAMESPACE, key.namespace)
            if selector.matches(pod.metadata.labels) and not pod.finished
        ]
        if not pods:
            self._tell(budget, "NoPods", "No matching pods found")
        decision = decide(budget, pods, self._wanted(key, pods), self._context.now())
        # Evictions write to the same status: neither may overwrite the other.
        await self._context.put_status(BUDGETS, budget, decision.status, only_this_version=True)
        return decision.pause

    def _wanted(self, key: Key, pods: Iterable[Pod]) -> int:
        """The sizes of all owners, each counted once; a pod without one counts for itself."""
        sizes: dict[str, int] = {}
        for pod in pods:
            uid, size = self._owner_size(key, pod)
            sizes[uid] = size
        return sum(sizes.values())

    def _owner_size(self, key: Key, pod: Pod) -> tuple[str, int]:
        owner = owners.controller_of(pod)
        if owner is None:
            return pod.metadata.uid, 1
        at = key.sibling(owner.name)
        if owner.kind == "StatefulSet" and (stateful := self._stateful_sets.get(at)):
            return stateful.metadata.uid, stateful.spec.replicas
        if owner.kind == "ReplicationController" and (
            replicator := self._replication_controllers.get(at)
        ):
            return replicator.metadata.uid, replicator.spec.replicas
        if owner.kind == "ReplicaSet" and (replica_set := self._replica_sets.get(at)):
            above = owners.controller_of(replica_set)
            deployment = self._deployments.get(key.sibling(above.name)) if above else None
            if deployment is not None:
                return deployment.metadata.uid, deployment.spec.replicas
            return replica_set.metadata.uid, replica_set.spec.replicas
        return pod.metadata.uid, 1


def _selector(budget: PodDisruptionBudget) -> LabelSelector:
    """Here an empty selector means every pod of the namespace."""
    selector = budget.spec.selector
    return owners.any_selector(None if selector is None else msgspec.to_builtins(selector))
