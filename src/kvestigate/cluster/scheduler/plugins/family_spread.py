"""Pods of one replica set or stateful set spread over hosts and zones, without being asked to.

It is the default of the plugin PodTopologySpread, for pods that state no constraints. Siblings
are known by their owner; kube-scheduler selects them by the labels that the owner, and services,
select, which is the same for all but overlapping selectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kvestigate.cluster.scheduler.framework import MAX_SCORE, Grade
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.state import ClusterState

_HOST_SLACK, _ZONE_SLACK = 2, 4
"""One less than the skew that is put up with."""


class FamilySpread:
    name = "PodTopologySpread"
    local = False

    def cares(self, pod: PodFacts, state: ClusterState) -> bool:
        constraints = pod.pod.spec.topology_spread_constraints
        return bool(pod.family) and not constraints and bool(state.families.of(pod))

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        if not self.cares(pod, state):
            return None
        on_host = state.families.of(pod)
        in_zone = _by_zone(pod, on_host, state)
        host_weight = math.log(len(nodes) + 2)
        zone_weight = math.log(len({node.zone for node in nodes}) + 2)
        known: dict[tuple[int | None, str | None], int] = {}

        def grade(node: NodeState) -> int:
            """Kept by case: most of thousands of nodes have as many siblings as others."""
            siblings = on_host.get(node.name, 0) if node.is_host else None
            case = (siblings, node.zone)
            score = known.get(case)
            if score is None:
                total = 0.5  # so that what follows rounds to the nearest number
                if siblings is not None:
                    total += siblings * host_weight + _HOST_SLACK
                if node.zone is not None:
                    total += in_zone.get(node.zone, 0) * zone_weight + _ZONE_SLACK
                score = known[case] = int(total)
            return score

        return grade

    def scores(self, grades: list[int]) -> list[int]:
        least, most = min(grades), max(grades)
        if not most:
            return [MAX_SCORE] * len(grades)
        return [MAX_SCORE * (most + least - grade) // most for grade in grades]


def _by_zone(pod: PodFacts, on_host: dict[str, int], state: ClusterState) -> dict[str, int]:
    counts: dict[str, int] = {}
    test = pod.required_nodes
    for name, count in on_host.items():
        node = state.nodes[name]
        if node.zone is not None and (test is None or test(name, node.labels)):
            counts[node.zone] = counts.get(node.zone, 0) + count
    return counts
