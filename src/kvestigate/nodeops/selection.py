"""Which pods are evicted, why others are skipped, and which budgets protect them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget

SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class EvictionTarget:
    """A pod to be evicted."""

    namespace: str
    name: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Skipped:
    namespace: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    evict: tuple[EvictionTarget, ...]
    skip: tuple[Skipped, ...]


def choose(pods: Iterable[Pod], *, include_system: bool = False) -> Choice:
    evict, skip = [], []
    for pod in pods:
        meta = pod.metadata
        reason = _protection(pod, include_system)
        if reason:
            skip.append(Skipped(meta.namespace, meta.name, reason))
        else:
            evict.append(EvictionTarget(meta.namespace, meta.name, meta.uid, pod.spec.node_name))
    return Choice(tuple(evict), tuple(skip))


def _protection(pod: Pod, include_system: bool) -> str:
    """Why a pod is not evicted; empty if it is."""
    meta = pod.metadata
    if any(owner.kind == "DaemonSet" and owner.controller for owner in meta.owner_references):
        return "managed by a DaemonSet"
    if _MIRROR in meta.annotations:
        return "static pod"
    if meta.deletion_timestamp is not None:
        return "already terminating"
    if pod.status.phase in ("Succeeded", "Failed"):
        return "completed"
    if meta.namespace in SYSTEM and not include_system:
        return "in a system namespace"
    return ""


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
