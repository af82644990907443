"""A claim with the access mode ReadWriteOncePod serves one pod at a time."""

from __future__ import annotations

from kvestigate.client.cache import Key
from kvestigate.cluster.scheduler.framework import Judge, Rejection
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.state import ClusterState


class VolumeRestrictions:
    name = "VolumeRestrictions"
    local = False
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
