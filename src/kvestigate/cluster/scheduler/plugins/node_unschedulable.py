"""Cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from kvestigate.cluster.scheduler.framework import Judge, Rejection
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.selection import tolerates
from kvestigate.cluster.scheduler.state import ClusterState
from kvestigate.kube.views.core import Taint

_CORDONED = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    name = "NodeUnschedulable"
    local = True
    _rejection = Rejection(name, ("node(s) were unschedulable",), resolvable=False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        if tolerates(pod.pod.spec.tolerations, _CORDONED):
            return None
        return self._judge

    def _judge(self, node: NodeState) -> Rejection | None:
        return self._rejection if node.node.spec.unschedulable else None
