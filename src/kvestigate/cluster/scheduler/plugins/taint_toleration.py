"""Taints keep pods away that do not tolerate them, or make nodes less welcome."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.scheduler.framework import Grade, Judge, Rejection, in_proportion
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.selection import tolerates, untolerated
from kvestigate.cluster.scheduler.state import ClusterState

_SOFT = "PreferNoSchedule"


class TaintToleration:
    name = "TaintToleration"
    local = True
    _rejection = Rejection(name, ("node(s) had untolerated taint(s)",), resolvable=False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        tolerations = pod.pod.spec.tolerations

        def judge(node: NodeState) -> Rejection | None:
            if node.taints and untolerated(tolerations, node.taints) is not None:
                return self._rejection
            return None

        return judge


class SoftTaints:
    """The scoring half: it compares nodes, so it is not local."""

    name = "TaintToleration"
    local = False

    def cares(self, pod: PodFacts, state: ClusterState) -> bool:
        return bool(state.soft_tainted)

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        if not self.cares(pod, state):
            return None
        tolerations = [item for item in pod.pod.spec.tolerations if item.effect in ("", _SOFT)]
        return lambda node: sum(
            taint.effect == _SOFT and not tolerates(tolerations, taint) for taint in node.taints
        )

    def scores(self, grades: list[int]) -> list[int]:
        return in_proportion(grades, reverse=True)
