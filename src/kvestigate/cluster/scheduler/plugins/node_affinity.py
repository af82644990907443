"""`nodeSelector` and node affinity: where a pod must be, and where it would like to be."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.scheduler.framework import Grade, Judge, Rejection, in_proportion
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.selection import node_term
from kvestigate.cluster.scheduler.state import ClusterState


class NodeAffinity:
    name = "NodeAffinity"
    local = True
    _rejection = Rejection(name, ("node(s) didn't match Pod's node affinity/selector",), False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        test = pod.required_nodes
        if test is None:
            return None

        def judge(node: NodeState) -> Rejection | None:
            return None if test(node.name, node.labels) else self._rejection

        return judge


class PreferredNodes:
    """The scoring half."""

    name = "NodeAffinity"
    local = False

    def cares(self, pod: PodFacts, state: ClusterState) -> bool:
        affinity = pod.pod.spec.affinity
        return bool(affinity and affinity.node_affinity and affinity.node_affinity.preferred)

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
