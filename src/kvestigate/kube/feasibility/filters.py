"""All filters, in the order of kube-scheduler's default profile. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kvestigate.kube.feasibility.devices import DynamicResources
from kvestigate.kube.feasibility.framework import Filter, Judge, Rejection
from kvestigate.kube.feasibility.node_filters import (
    Fit,
    NodeAffinity,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
)
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pod_affinity import InterPodAffinity
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.feasibility.topology_spread import PodTopologySpread
from kvestigate.kube.feasibility.volumes import VolumeBinding, VolumeRestrictions, VolumeZone

FILTERS: tuple[Filter, ...] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    Fit(),
    VolumeRestrictions(),
    VolumeBinding(),
    VolumeZone(),
    DynamicResources(),
    PodTopologySpread(),
    InterPodAffinity(),
)
"""In this order; the first that rejects a node is the one that is told of."""


def judges_of(
    pod: PodFacts, state: ClusterState, filters: tuple[Filter, ...] = FILTERS
) -> list[Judge] | Rejection:
    """The functions that filter nodes for this pod; a rejection if no node will do."""
    judges: list[Judge] = []
    for plugin in filters:
        verdict = plugin.judge(pod, state)
        if isinstance(verdict, Rejection):
            return verdict
        if verdict is not None:
            judges.append(verdict)
    return judges


def first_rejection(judges: list[Judge], node: NodeState) -> Rejection | None:
    for judge in judges:
        rejection = judge(node)
        if rejection is not None:
            return rejection
    return None


def verdicts(pod: PodFacts, state: ClusterState) -> dict[str, Rejection | None]:
    """Every node, with the reason why the pod cannot be there; None where it can."""
    judges = judges_of(pod, state)
    if isinstance(judges, Rejection):
        return dict.fromkeys(state.nodes, judges)
    return {name: first_rejection(judges, node) for name, node in state.nodes.items()}


def unavailable(
    total: int,
    everywhere: Rejection | None,
    rejections: Iterable[Rejection],
    elsewhere: Rejection | None,
) -> str:
    """`0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`"""
    start = f"0/{total} nodes are available:"
    if everywhere is not None:
        return f"{start} {', '.join(everywhere.reasons)}."
    counts: Counter[str] = Counter()
    known = 0
    for rejection in rejections:
        counts.update(rejection.reasons)
        known += 1
    if elsewhere is not None and known < total:
        for reason in elsewhere.reasons:
            counts[reason] += total - known
    if not counts:
        return start
    return f"{start} {', '.join(sorted(f'{count} {text}' for text, count in counts.items()))}."
