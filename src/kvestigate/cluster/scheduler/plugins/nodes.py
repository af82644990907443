"""Nodes that suit a pod better by their taints and labels."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.scheduler.framework import Grade, in_proportion
from kvestigate.kube.eligibility import untolerated
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.node_selection import node_term

_SOFT = "PreferNoSchedule"


class SoftTaints:
    """`PreferNoSchedule` taints make nodes less welcome."""

    name = "TaintToleration"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        if not any(taint.effect == _SOFT for node in nodes for taint in node.taints):
            return None
        tolerations = [item for item in pod.pod.spec.tolerations if item.effect in ("", _SOFT)]
        return lambda node: len(untolerated(tolerations, node.taints, [_SOFT]))

    def scores(self, grades: list[int]) -> list[int]:
        return in_proportion(grades, reverse=True)


class PreferredNodes:
    """Preferred node affinity: where a pod would like to be."""

    name = "NodeAffinity"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        affinity = pod.pod.spec.affinity
        node_affinity = affinity.node_affinity if affinity else None
        terms = [
            (node_term(item.preference), item.weight)
            for item in (node_affinity.preferred if node_affinity else ())
        ]
        if not terms:
            return None
        return lambda node: sum(weight for test, weight in terms if test(node.name, node.labels))

    def scores(self, grades: list[int]) -> list[int]:
        return in_proportion(grades)
