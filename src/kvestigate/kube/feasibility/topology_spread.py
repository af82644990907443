"""Pods that must be spread evenly over zones, hosts or other labels of nodes. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.kube.eligibility import untolerated
from kvestigate.kube.feasibility.framework import Judge, Rejection
from kvestigate.kube.feasibility.indexes import by_node
from kvestigate.kube.feasibility.node_filters import HARD
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.selection import label_selector, with_label_keys
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.selectors import LabelSelector
from kvestigate.kube.views.placement import TopologySpreadConstraint

_HARD = "DoNotSchedule"
_NO_MATCH = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class Constraint:
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
        constraints = constraints_of(pod, _HARD)
        if not constraints:
            return None
        limits = [
            (constraint.key, *_limit(constraint, counts, pod))
            for constraint, counts in zip(
                constraints, domains(pod, constraints, state), strict=True
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


def constraints_of(pod: PodFacts, when: str) -> list[Constraint]:
    return [
        Constraint(
            item,
            with_label_keys(label_selector(item.label_selector), pod.labels, item.match_label_keys),
        )
        for item in pod.pod.spec.topology_spread_constraints
        if item.when_unsatisfiable == when
    ]


def domains(
    pod: PodFacts, constraints: list[Constraint], state: ClusterState
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
    constraint: Constraint, counts: dict[str, int], pod: PodFacts
) -> tuple[int, dict[str, int]]:
    """How many pods a domain may have before this one comes."""
    enough = len(counts) >= (constraint.written.min_domains or 1)
    least = min(counts.values()) if enough else 0
    itself = constraint.selector.matches(pod.labels)
    return constraint.written.max_skew + least - itself, counts
