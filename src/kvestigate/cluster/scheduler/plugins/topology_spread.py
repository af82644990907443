"""Pods spread evenly over zones, hosts or whatever nodes are labelled with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvestigate.cluster.scheduler.framework import MAX_SCORE, Grade, Judge, Rejection
from kvestigate.cluster.scheduler.indexes import by_node
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.plugins.nodes import HARD
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.selection import label_selector, with_label_keys
from kvestigate.cluster.scheduler.state import ClusterState
from kvestigate.kube.eligibility import untolerated
from kvestigate.kube.selectors import LabelSelector
from kvestigate.kube.views.placement import TopologySpreadConstraint

_HARD = "DoNotSchedule"
_SOFT = "ScheduleAnyway"
_NO_MATCH = "node(s) didn't match pod topology spread constraints"
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_INELIGIBLE = -1


@dataclass(frozen=True, slots=True)
class _Constraint:
    written: TopologySpreadConstraint
    selector: LabelSelector

    @property
    def key(self) -> str:
        return self.written.topology_key


class PodTopologySpread:
    name = "PodTopologySpread"
    _unlabelled = Rejection(name, (f"{_NO_MATCH} (missing required label)",), resolvable=False)
    _skewed = Rejection(name, (_NO_MATCH,))

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        constraints = _constraints(pod, _HARD)
        if not constraints:
            return None
        limits = [
            (constraint.key, *_limit(constraint, counts, pod))
            for constraint, counts in zip(
                constraints, _domains(pod, constraints, state), strict=True
            )
        ]

        def judge(node: NodeState) -> Rejection | None:
            for key, most, counts in limits:
                value = node.labels.get(key)
                if value is None:
                    return self._unlabelled
                if counts.get(value, 0) > most:
                    return self._skewed
            return None

        return judge


def _constraints(pod: PodFacts, when: str) -> list[_Constraint]:
    return [
        _Constraint(
            item,
            with_label_keys(label_selector(item.label_selector), pod.labels, item.match_label_keys),
        )
        for item in pod.pod.spec.topology_spread_constraints
        if item.when_unsatisfiable == when
    ]


def _domains(
    pod: PodFacts, constraints: list[_Constraint], state: ClusterState
) -> list[dict[str, int]]:
    """For each constraint the matching pods by domain, over the nodes that count."""
    namespace = pod.key.namespace
    matching = [by_node(state.placed, namespace, item.selector.matches) for item in constraints]
    domains: list[dict[str, int]] = [{} for _ in constraints]
    keys = [item.key for item in constraints]
    for node in state.nodes.values():
        labels = node.labels
        if any(key not in labels for key in keys):
            continue
        for constraint, pods, counts in zip(constraints, matching, domains, strict=True):
            if _counts(constraint.written, pod, node):
                value = labels[constraint.key]
                counts[value] = counts.get(value, 0) + pods.get(node.name, 0)
    return domains


def _counts(constraint: TopologySpreadConstraint, pod: PodFacts, node: NodeState) -> bool:
    if constraint.node_affinity_policy == "Honor":
        test = pod.required_nodes
        if test is not None and not test(node.name, node.labels):
            return False
    if constraint.node_taints_policy == "Honor" and node.taints:
        return not untolerated(pod.pod.spec.tolerations, node.taints, HARD)
    return True


def _limit(
    constraint: _Constraint, counts: dict[str, int], pod: PodFacts
) -> tuple[int, dict[str, int]]:
    """How many pods a domain may have before this one comes."""
    enough = len(counts) >= (constraint.written.min_domains or 1)
    least = min(counts.values()) if enough else 0
    itself = constraint.selector.matches(pod.labels)
    return constraint.written.max_skew + least - itself, counts


class EvenSpread:
    """Constraints with `whenUnsatisfiable: ScheduleAnyway`.

    Pods of a ReplicaSet or StatefulSet that state no constraints are spread over hosts and zones
    by default. Siblings are known by their owner; kube-scheduler selects them by the labels that
    the owner, and services, select, which is the same for all but overlapping selectors.
    """

    name = "PodTopologySpread"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        constraints = _constraints(pod, _SOFT)
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
    pod: PodFacts, constraints: list[_Constraint], state: ClusterState
) -> list[dict[str, int]]:
    """By domain, or for hosts by node name, where all pods of the host count."""
    namespace = pod.key.namespace
    return [
        by_node(state.placed, namespace, item.selector.matches) if item.key == _HOST else counts
        for item, counts in zip(constraints, _domains(pod, constraints, state), strict=True)
    ]


def _weight(key: str, nodes: Sequence[NodeState]) -> float:
    size = len(nodes) if key == _HOST else len({node.labels.get(key) for node in nodes})
    return math.log(size + 2)
