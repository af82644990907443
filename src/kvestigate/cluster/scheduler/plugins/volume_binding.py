"""A pod goes where its volumes are, or where they can be made."""

from __future__ import annotations

from kvestigate.cluster.scheduler.framework import Judge, Rejection
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.state import ClusterState
from kvestigate.cluster.scheduler.volumes import Claims, Trouble, claims_of, plan


class VolumeBinding:
    name = "VolumeBinding"
    local = False

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        if not pod.claims:
            return None
        claims = claims_of(pod, state)
        if isinstance(claims, str):
            return Rejection(self.name, (claims,), resolvable=False)
        return self._judge(claims, state)

    def _judge(self, claims: Claims, state: ClusterState) -> Judge:
        def judge(node: NodeState) -> Rejection | None:
            found = plan(claims, node, state)
            if isinstance(found, Trouble):
                return Rejection(self.name, found.reasons, resolvable=False)
            return None

        return judge
