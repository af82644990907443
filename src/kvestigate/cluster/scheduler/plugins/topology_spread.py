"""Pods that would like to be spread evenly over zones, hosts or other labels of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from kvestigate.cluster.scheduler.framework import MAX_SCORE, Grade
from kvestigate.kube.feasibility.indexes import by_node
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.feasibility.topology_spread import Constraint, constraints_of, domains

_SOFT = "ScheduleAnyway"
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_INELIGIBLE = -1


class EvenSpread:
    """Constraints with `whenUnsatisfiable: ScheduleAnyway`.

    Pods of a ReplicaSet or StatefulSet that state no constraints are spread over hosts and zones
    by default. Siblings are known by their owner; kube-scheduler selects them by the labels that
    the owner, and services, select, which is the same for all but overlapping selectors.
    """

    name = "PodTopologySpread"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        constraints = constraints_of(pod, _SOFT)
        if not pod.pod.spec.topology_spread_constraints:
            return _grade(_default_parts(pod, state, nodes), others=0)
        keys = [item.key for item in constraints]
        eligible = [node for node in nodes if all(key in node.labels for key in keys)]
        parts = [
            _Part(item.key, item.written.max_skew - 1, _weight(item.key, eligible), counts)
            for item, counts in zip(constraints, _soft_counts(pod, constraints, state), strict=True)
        ]
        return _grade(parts, others=_INELIGIBLE)

    def scores(self, grades: list[int]) -> list[int]:
        known = [grade for grade in grades if grade >= 0]
        least, most = min(known, default=0), max(known, default=0)
        return [
            0 if grade < 0 else MAX_SCORE * (most + least - grade) // most if most else MAX_SCORE
            for grade in grades
        ]


class _Part(NamedTuple):
    """What one constraint adds to the grade of a node."""

    key: str
    slack: int
    """One less than the skew that is accepted."""
    weight: float
    counts: dict[str, int]
    """Matching pods by domain, or for hosts by node name."""


def _grade(parts: list[_Part], *, others: int) -> Grade | None:
    """`others`: what a node without the label of a part gets; 0 leaves that part out."""

    def grade(node: NodeState) -> int:
        total = 0.5  # so that what follows rounds to the nearest number
        for key, slack, weight, counts in parts:
            value = node.labels.get(key)
            if value is not None:
                total += counts.get(node.name if key == _HOST else value, 0) * weight + slack
            elif others:
                return others
        return int(total)

    return grade if parts else None


def _default_parts(pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> list[_Part]:
    on_host = state.families.of(pod.family) if pod.family else {}
    if not on_host:
        return []
    in_zone: dict[str, int] = {}
    test = pod.required_nodes
    for name, count in on_host.items():
        labels = state.nodes[name].labels
        if _ZONE in labels and (test is None or test(name, labels)):
            in_zone[labels[_ZONE]] = in_zone.get(labels[_ZONE], 0) + count
    return [
        _Part(_HOST, 2, _weight(_HOST, nodes), on_host),
        _Part(_ZONE, 4, _weight(_ZONE, nodes), in_zone),
    ]


def _soft_counts(
    pod: PodFacts, constraints: list[Constraint], state: ClusterState
) -> list[dict[str, int]]:
    """By domain, or for hosts by node name, where all pods of the host count."""
    namespace = pod.key.namespace
    return [
        by_node(state.placed, namespace, item.selector.matches) if item.key == _HOST else counts
        for item, counts in zip(constraints, domains(pod, constraints, state), strict=True)
    ]


def _weight(key: str, nodes: Sequence[NodeState]) -> float:
    size = len(nodes) if key == _HOST else len({node.labels.get(key) for node in nodes})
    return math.log(size + 2)
