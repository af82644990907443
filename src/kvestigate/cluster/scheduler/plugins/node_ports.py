"""Two pods cannot listen on the same port of a host."""

from __future__ import annotations

from kvestigate.cluster.scheduler.framework import Judge, Rejection
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.state import ClusterState


class NodePorts:
    name = "NodePorts"
    local = True
    _rejection = Rejection(name, ("node(s) didn't have free ports for the requested pod ports",))

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        ports = pod.ports
        if not ports:
            return None

        def judge(node: NodeState) -> Rejection | None:
            return self._rejection if any(map(node.port_taken, ports)) else None

        return judge
