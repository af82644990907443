"""Nodes where a pod's claims get the devices that they would rather have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvestigate.cluster.scheduler.framework import Grade, in_proportion
from kvestigate.kube.feasibility.devices import NAME, PodClaims, allocations, claims_of
from kvestigate.kube.feasibility.framework import Rejection
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.views.devices import Allocation, ResourceClaim

_MOST_ALTERNATIVES = 8


class PreferredDevices:
    """The earlier an alternative stands in its request, the better is the node that has it."""

    name = NAME

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        claims = claims_of(pod, state) if pod.pod.spec.resource_claims else PodClaims()
        if isinstance(claims, Rejection) or not _have_alternatives(claims.waiting):
            return None  # claims with devices prefer no node

        def grade(node: NodeState) -> int:
            gained = allocations(claims, node, state)
            if isinstance(gained, Rejection):
                return 0
            return sum(map(_worth, claims.waiting, gained))

        return grade

    def scores(self, grades: list[int]) -> list[int]:
        return in_proportion(grades)


def _have_alternatives(claims: Iterable[ResourceClaim]) -> bool:
    return any(each.first_available for claim in claims for each in claim.spec.devices.requests)


def _worth(claim: ResourceClaim, allocation: Allocation) -> int:
    chosen = {result.request for result in allocation.devices.results}
    return sum(
        _MOST_ALTERNATIVES - place
        for request in claim.spec.devices.requests
        for place, each in enumerate(request.first_available)
        if f"{request.name}/{each.name}" in chosen
    )
