"""A pod that names its node gets no other."""

from __future__ import annotations

from kvestigate.cluster.scheduler.framework import Judge, Rejection
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.state import ClusterState


class NodeName:
    name = "NodeName"
    local = False
    _rejection = Rejection(name, ("node(s) didn't match the requested node name",), False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        wanted = pod.pod.spec.node_name
        if not wanted:
            return None

        def judge(node: NodeState) -> Rejection | None:
            return None if node.name == wanted else self._rejection

        return judge
