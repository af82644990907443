"""Plugins that look at the volumes of a pod: where they are, can be made, and may be used."""

from __future__ import annotations

from kvestigate.client.cache import Key
from kvestigate.cluster.scheduler.framework import Judge, Rejection
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.state import ClusterState
from kvestigate.cluster.scheduler.volumes import Claims, Trouble, claims_of, plan


class VolumeRestrictions:
    """A claim with the access mode ReadWriteOncePod serves one pod at a time."""

    name = "VolumeRestrictions"
    _taken = Rejection(
        name,
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
            " already in-use by another pod",
        ),
    )

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        exclusive = []
        for name in pod.claims:
            key = Key(pod.key.namespace, name)
            claim = state.claims.get(key)
            if claim is None:
                return Rejection(self.name, (f'persistentvolumeclaim "{name}" not found',), False)
            if "ReadWriteOncePod" in claim.spec.access_modes:
                exclusive.append(key)
        if not any(True for key in exclusive for _ in state.users_of(key)):
            return None
        return self._judge

    def _judge(self, node: NodeState) -> Rejection:
        return self._taken


class VolumeBinding:
    """A pod goes where its volumes are, or where they can be made."""

    name = "VolumeBinding"

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        if not pod.claims:
            return None
        claims = claims_of(pod, state)
        if isinstance(claims, str):
            return Rejection(self.name, (claims,), resolvable=False)
        return self._judge(claims, state)

    def _judge(self, claims: Claims, state: ClusterState) -> Judge:
        def judge(node: NodeState) -> Rejection | None:
            planned = plan(claims, node, state)
            if isinstance(planned, Trouble):
                return Rejection(self.name, planned.reasons, resolvable=False)
            return None

        return judge
