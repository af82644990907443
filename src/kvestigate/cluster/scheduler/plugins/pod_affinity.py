"""Pods that would like to be near other pods or far from them."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.scheduler.framework import MAX_SCORE, Grade
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pod_affinity import about, weighed
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState


class PreferredNeighbours:
    """Preferred affinity, of this pod and of placed pods towards it."""

    name = "InterPodAffinity"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        weights = weighed([(term, term.weight) for term in pod.preferences], state)
        for term, counts in about(pod, state.preferences, state):
            for value, count in counts.items():
                place = (term.topology_key, value)
                weights[place] = weights.get(place, 0) + count * term.weight
        if not weights:
            return None
        return lambda node: sum(weights.get(item, 0) for item in node.labels.items())

    def scores(self, grades: list[int]) -> list[int]:
        least, most = min(grades), max(grades)
        if most == least:
            return [0] * len(grades)
        return [int(MAX_SCORE * ((grade - least) / (most - least))) for grade in grades]
