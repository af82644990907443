"""Writes the devices of pods into their ResourceClaims, before pods are bound, and takes them back.

A claim is allocated and reserved for its pod in one write, so that nobody sees an allocation that
belongs to no pod. The finalizer comes first: it keeps the claim for as long as devices are
allocated to it. Whether another scheduler was faster shows in a conflict, after which the claim is
read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api, PatchType
from kvestigate.cluster.scheduler.binding import in_time
from kvestigate.cluster.scheduler.following import RESOURCE_CLAIMS, Follower
from kvestigate.kube.feasibility.devices import (
    PodClaims,
    allocations,
    binding_failure,
    claims_of,
    is_bound,
)
from kvestigate.kube.feasibility.framework import Rejection
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.keys import Key, key_of
from kvestigate.kube.times import text
from kvestigate.kube.views.devices import Allocation, ResourceClaim

FINALIZER = "resource.kubernetes.io/delete-protection"
BINDING_TIMEOUT = 600.0
"""Seconds that devices have to meet the conditions for binding their pod."""
_TRIES = 5


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """What is left to do for a pod's claims before it can be bound."""

    claims: tuple[tuple[ResourceClaim, Allocation | None], ...] = ()
    """Each with the devices that it gets; None for those that have theirs."""

    @property
    def takes_long(self) -> bool:
        """Whether a driver has to prepare devices before the pod is bound."""
        return any(
            result.binding_conditions
            for claim, gained in self.claims
            for allocation in (gained or claim.status.allocation,)
            if allocation is not None
            for result in allocation.devices.results
        )


class NoPlan(Exception):
    """The claims of a pod cannot have devices on the chosen node any more."""


def plan_devices(pod: PodFacts, node: str, state: ClusterState) -> DevicePlan:
    """What a pod's claims get on the node that was chosen; counts as theirs from now on."""
    if not pod.pod.spec.resource_claims:
        return DevicePlan()
    claims = claims_of(pod, state)
    gained = (
        claims if isinstance(claims, Rejection) else allocations(claims, state.nodes[node], state)
    )
    if isinstance(claims, Rejection) or isinstance(gained, Rejection):
        raise NoPlan(f"claims of {pod.key} on {node}: {gained}")
    for claim, allocation in zip(claims.waiting, gained, strict=True):
        state.devices.assume(key_of(claim), allocation)
    return _plan(claims, gained)


def _plan(claims: PodClaims, gained: Iterable[Allocation]) -> DevicePlan:
    present = [(claim, None) for claim in claims.allocated]
    return DevicePlan((*present, *zip(claims.waiting, gained, strict=True)))


class DeviceWriter:
    """What the scheduler writes into claims."""

    def __init__(self, api: Api, clock: Clock, follower: Follower, state: ClusterState) -> None:
        self._api = api
        self._clock = clock
        self._follower = follower
        self._state = state

    async def reserve(self, pod: PodFacts, plan: DevicePlan) -> None:
        """Allocate and reserve the claims, and wait until drivers have prepared the devices."""
        for claim, allocation in plan.claims:
            written = None
            try:
                written = await self._reserve(pod, claim, allocation)
            finally:
                if allocation is not None:
                    self._state.devices.settle(key_of(claim), written)
        if plan.takes_long:
            await self._prepared([key_of(claim) for claim, _ in plan.claims])

    async def unreserve(self, pod: PodFacts, plan: DevicePlan) -> None:
        """Give up what `reserve` did, as far as it came."""
        for claim, _ in plan.claims:
            key = key_of(claim)
            if self._state.devices.is_pending(key):
                self._state.devices.settle(key, None)
            known = self._state.devices.claim(key)
            if known is None or not _is_reserved(known, pod):
                continue
            try:
                await self._withdraw(pod, known)
            except errors.KvestigateError:
                continue  # the next attempt finds the claim reserved, or its controller frees it

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Free the devices of a claim, so that it may get others."""
        version = {"resourceVersion": claim.metadata.resource_version}
        gone = {"allocation": None, "reservedFor": None, "devices": None}
        await self._patch(claim, {"metadata": version, "status": gone}, "status")

    # -- parts ---------------------------------------------------------------------------------

    async def _reserve(
        self, pod: PodFacts, claim: ResourceClaim, allocation: Allocation | None
    ) -> ResourceClaim:
        if _is_reserved(claim, pod):
            return claim
        key = key_of(claim)
        for attempt in range(_TRIES):
            if attempt:
                claim = await self._api.get(
                    RESOURCE_CLAIMS, key.name, namespace=key.namespace, type=ResourceClaim
                )
            _check(claim, allocation)
            try:
                if allocation is not None:
                    claim = await self._protect(claim)
                return await self._write(pod, claim, allocation)
            except errors.Conflict:
                continue
        raise errors.Conflict(f"claim {key} is changed by others all the time")

    async def _protect(self, claim: ResourceClaim) -> ResourceClaim:
        finalizers = claim.metadata.finalizers
        if FINALIZER in finalizers:
            return claim
        metadata = {
            "resourceVersion": claim.metadata.resource_version,
            "finalizers": [*finalizers, FINALIZER],
        }
        return await self._patch(claim, {"metadata": metadata})

    async def _write(
        self, pod: PodFacts, claim: ResourceClaim, allocation: Allocation | None
    ) -> ResourceClaim:
        consumer = {"resource": "pods", "name": pod.key.name, "uid": pod.uid}
        reserved = [*msgspec.to_builtins(claim.status.reserved_for), consumer]
        status: dict[str, Any] = {"reservedFor": reserved}
        if allocation is not None:
            stamp = {"allocationTimestamp": text(self._clock.now())}
            status["allocation"] = msgspec.to_builtins(allocation) | stamp
        version = {"resourceVersion": claim.metadata.resource_version}
        return await self._patch(claim, {"metadata": version, "status": status}, "status")

    async def _withdraw(self, pod: PodFacts, claim: ResourceClaim) -> None:
        metadata, gone = {"uid": claim.metadata.uid}, {"$patch": "delete", "uid": pod.uid}
        patch = {"metadata": metadata, "status": {"reservedFor": [gone]}}
        left = await self._patch(claim, patch, "status", PatchType.STRATEGIC)
        if not left.status.reserved_for and not is_bound(left):
            await self.deallocate(left)  # other devices may become ready

    async def _patch(
        self,
        claim: ResourceClaim,
        patch: dict[str, Any],
        subresource: str = "",
        kind: PatchType = PatchType.MERGE,
    ) -> ResourceClaim:
        meta = claim.metadata
        return await self._api.patch(
            RESOURCE_CLAIMS,
            meta.name,
            patch,
            kind,
            namespace=meta.namespace,
            subresource=subresource,
            type=ResourceClaim,
        )

    async def _prepared(self, keys: list[Key]) -> None:
        late = f"device binding timeout: claim={', '.join(key.name for key in keys)}"
        await in_time(self._clock, BINDING_TIMEOUT, self._all_bound(keys), late)

    async def _all_bound(self, keys: list[Key]) -> None:
        for key in keys:
            while True:
                claim = self._state.devices.claim(key)
                if claim is None:
                    raise errors.NotFound(f'resourceclaim.resource.k8s.io "{key.name}" not found')
                if problem := binding_failure(claim):
                    raise errors.Conflict(f"device binding failed: {problem}")
                if is_bound(claim):
                    break
                await self._follower.changed(RESOURCE_CLAIMS, key)


def _is_reserved(claim: ResourceClaim, pod: PodFacts) -> bool:
    return any(each.uid == pod.uid for each in claim.status.reserved_for)


def _check(claim: ResourceClaim, allocation: Allocation | None) -> None:
    """Conflict, if somebody else has changed what the decision was based on."""
    if claim.metadata.deletion_timestamp is not None:
        raise errors.Gone(f"claim {key_of(claim)} got deleted in the meantime")
    if allocation is not None and claim.status.allocation is not None:
        raise errors.Gone(f"claim {key_of(claim)} got allocated elsewhere in the meantime")
    if allocation is None and claim.status.allocation is None:
        raise errors.Gone(f"claim {key_of(claim)} got deallocated elsewhere in the meantime")
