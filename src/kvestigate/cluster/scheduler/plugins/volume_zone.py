"""A volume that is labelled with a zone or a region can only be used there."""

from __future__ import annotations

from kvestigate.client.cache import Key
from kvestigate.cluster.scheduler.framework import Judge, Rejection
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.state import ClusterState

_PLACES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_SEPARATOR = "__"  # between the zones of a volume that is in several


class VolumeZone:
    name = "VolumeZone"
    local = False
    _elsewhere = Rejection(name, ("node(s) had no available volume zone",), resolvable=False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        wanted = [
            (key, set(value.split(_SEPARATOR)))
            for name in pod.claims
            for key, value in _labels(Key(pod.key.namespace, name), state).items()
            if key in _PLACES
        ]
        if not wanted:
            return None

        def judge(node: NodeState) -> Rejection | None:
            if not any(key in node.labels for key in _PLACES):
                return None  # a cluster without zones
            fits = all(node.labels.get(key) in values for key, values in wanted)
            return None if fits else self._elsewhere

        return judge


def _labels(key: Key, state: ClusterState) -> dict[str, str]:
    claim = state.claims.get(key)
    volume = state.volumes.get(claim.spec.volume_name) if claim else None
    return volume.metadata.labels if volume else {}
