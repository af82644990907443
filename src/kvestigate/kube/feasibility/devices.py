"""Devices that a pod asks for by ResourceClaims: those it has, those it gets on a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvestigate.kube.devices.allocation import AllocationError, InvalidPools
from kvestigate.kube.feasibility.framework import Judge, Rejection
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.keys import Key, key_of
from kvestigate.kube.node_selection import node_selector
from kvestigate.kube.views.devices import (
    AllocatedDeviceStatus,
    Allocation,
    DeviceRequest,
    DeviceResult,
    ResourceClaim,
)
from kvestigate.kube.views.meta import Condition

NAME = "DynamicResources"
ELSEWHERE = "resourceclaim not available on the node"
UNALLOCATED = "cannot allocate all claims"


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of one pod."""

    allocated: tuple[ResourceClaim, ...] = ()
    waiting: tuple[ResourceClaim, ...] = ()
    """Those that get devices together with the pod's node."""


class DynamicResources:
    """A pod goes where its claims have devices, or can get them."""

    name = NAME

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        claims = claims_of(pod, state)
        if isinstance(claims, Rejection):
            return claims
        if not claims.allocated and not claims.waiting:
            return None

        def judge(node: NodeState) -> Rejection | None:
            gained = allocations(claims, node, state)
            if isinstance(gained, Rejection):
                return gained
            if any(not is_available(claim, node) for claim in claims.allocated):
                return _refused(ELSEWHERE)
            return None

        return judge


def claims_of(pod: PodFacts, state: ClusterState) -> PodClaims | Rejection:
    """The claims of a pod; a rejection if the pod has to wait for one of them."""
    allocated, waiting = [], []
    for name in _names(pod):
        claim = name if isinstance(name, Rejection) else _usable(pod, name, state)
        if isinstance(claim, Rejection):
            return claim
        if claim.status.allocation is not None:
            allocated.append(claim)
        elif problem := _problem(claim, state):
            return _refused(problem)
        else:
            waiting.append(claim)
    return PodClaims(tuple(allocated), tuple(waiting))


def allocations(
    claims: PodClaims, node: NodeState, state: ClusterState
) -> list[Allocation] | Rejection:
    """What the waiting claims get on a node, one allocation for each."""
    if not claims.waiting:
        return []
    try:
        gained = state.devices.allocate(node.name, node.labels, claims.waiting)
    except InvalidPools as error:
        return _refused(str(error))
    except AllocationError as error:
        return Rejection(NAME, (str(error),), resolvable=False, fatal=True)
    return _refused(UNALLOCATED) if gained is None else gained


def is_available(claim: ResourceClaim, node: NodeState) -> bool:
    """Whether a node can use the devices that an allocated claim has."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    selector = allocation.node_selector
    if selector is not None and not node_selector(selector)(node.name, node.labels):
        return False
    return not binding_failure(claim)


def binding_failure(claim: ResourceClaim) -> str:
    """Why the devices of a claim never become ready; empty if they may or have."""
    for result, status in _binding(claim):
        for each in _conditions(status):
            if each.type in result.binding_failure_conditions and each.status == "True":
                name = claim.metadata.name
                return f'claim={name}, reason={each.reason}, message="{each.message}"'
    return ""


def is_bound(claim: ResourceClaim) -> bool:
    """Whether all devices of a claim meet the conditions for binding its pod."""
    return all(
        set(result.binding_conditions)
        <= {each.type for each in _conditions(status) if each.status == "True"}
        for result, status in _binding(claim)
    )


def _binding(
    claim: ResourceClaim,
) -> Iterator[tuple[DeviceResult, AllocatedDeviceStatus | None]]:
    """The devices of a claim that have conditions for binding, each with its status."""
    allocation = claim.status.allocation
    told = {(each.driver, each.pool, each.device): each for each in claim.status.devices}
    for result in allocation.devices.results if allocation is not None else ():
        if result.binding_conditions:
            yield result, told.get((result.driver, result.pool, result.device))


def _conditions(status: AllocatedDeviceStatus | None) -> tuple[Condition, ...]:
    return (status.conditions if status is not None else None) or ()


def _names(pod: PodFacts) -> Iterator[Key | Rejection]:
    made = {each.name: each for each in pod.pod.status.resource_claim_statuses}
    for claim in pod.pod.spec.resource_claims:
        name = claim.resource_claim_name
        if name is None:
            if claim.name not in made:
                yield _refused(f'pod "{pod.key}": ResourceClaim not created yet')
                return
            name = made[claim.name].resource_claim_name
        if name is not None:  # no claim was needed
            yield Key(pod.key.namespace, name)


def _usable(pod: PodFacts, key: Key, state: ClusterState) -> ResourceClaim | Rejection:
    claim = state.devices.claim(key)
    if claim is None:
        return _refused(f'resourceclaim.resource.k8s.io "{key.name}" not found')
    if claim.metadata.deletion_timestamp is not None:
        return _refused(f'resourceclaim "{key.name}" is being deleted')
    named = (each.resource_claim_name for each in pod.pod.spec.resource_claims)
    if key.name not in named and not _is_owner(pod, claim):
        other = f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
        return _refused(other)
    return claim


def _is_owner(pod: PodFacts, claim: ResourceClaim) -> bool:
    owners = claim.metadata.owner_references
    return any(each.controller and each.uid == pod.uid for each in owners)


def _problem(claim: ResourceClaim, state: ClusterState) -> str:
    if state.devices.is_pending(key_of(claim)):
        return f"resource claim {key_of(claim)} is in the process of being allocated"
    for name, kind in _classes(claim.spec.devices.requests):
        if kind not in state.devices.classes:
            return f"request {name}: device class {kind} does not exist"
    return ""


def _classes(requests: Iterable[DeviceRequest]) -> Iterator[tuple[str, str]]:
    """Requests and alternatives with the classes that they name."""
    for request in requests:
        if request.exactly is not None:
            yield request.name, request.exactly.device_class_name
        for each in request.first_available:
            yield f"{request.name}/{each.name}", each.device_class_name


def _refused(why: str) -> Rejection:
    return Rejection(NAME, (why,), resolvable=False)
