"""Devices that a pod asks for by ResourceClaims."""

from __future__ import annotations

from kvestigate.kube.feasibility.framework import Judge, Rejection
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.keys import Key


class DynamicResources:
    """A pod waits for the devices that it claims. Devices are not allocated yet, so it stays."""

    name = "DynamicResources"
    _unallocated = Rejection(name, ("cannot allocate all claims",), resolvable=False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        made = {each.name: each for each in pod.pod.status.resource_claim_statuses}
        needed = False
        for claim in pod.pod.spec.resource_claims:
            name = claim.resource_claim_name
            if name is None:
                if claim.name not in made:
                    why = f'pod "{pod.key.namespace}/{pod.key.name}": ResourceClaim not created yet'
                    return Rejection(self.name, (why,), resolvable=False)
                name = made[claim.name].resource_claim_name
                if name is None:
                    continue
            if problem := _problem(state, Key(pod.key.namespace, name)):
                return Rejection(self.name, (problem,), resolvable=False)
            needed = True
        return self._judge if needed else None

    def _judge(self, node: NodeState) -> Rejection:
        return self._unallocated


def _problem(state: ClusterState, key: Key) -> str:
    claim = state.resource_claims.get(key)
    if claim is None:
        return f'resourceclaim.resource.k8s.io "{key.name}" not found'
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{key.name}" is being deleted'
    return ""
