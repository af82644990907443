"""The devices that pods of a node have by ResourceClaims.

As a kubelet does, a node starts no container of a pod before all claims of the pod are allocated,
reserved for the pod and prepared by their drivers. A node has one driver, that of its simulated
GPUs. Where containers only exist as records, devices of all other drivers count as prepared, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.cluster.node.gpu.model import Gpu
from kvestigate.cluster.node.gpu.slices import DRA_DRIVER, devices
from kvestigate.cluster.node.pods.context import NodeContext
from kvestigate.cluster.node.spec.pod import Container, Pod
from kvestigate.kube.resources import Resource
from kvestigate.kube.times import text
from kvestigate.kube.views.devices import DeviceResult, ResourceClaim

RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")


class Unprepared(Exception):
    """The devices that a pod claims are not there."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Failed to prepare dynamic resources: prepare dynamic resources: {why}")


class Claims:
    """What the claims of a node's pods brought."""

    def __init__(self, context: NodeContext, gpus: Sequence[Gpu], *, simulated: bool) -> None:
        self._context = context
        self._simulated = simulated
        self._uuids = {name: uuid for name, uuid, _ in devices(gpus)}
        """By the names of devices."""
        self._prepared: dict[str, dict[str, tuple[DeviceResult, ...]]] = {}
        """Of each pod, by uid: its claims, by the names that the pod has for them."""

    async def prepare(self, pod: Pod) -> None:
        """Raises `Unprepared` until the pod has all devices that it claims."""
        uid = pod.metadata.uid
        if uid in self._prepared or not pod.spec.resource_claims:
            return
        prepared: dict[str, tuple[DeviceResult, ...]] = {}
        for own_name, name in _named(pod):
            raw = await self._fetch(pod, name)
            claim = msgspec.convert(raw, ResourceClaim)
            prepared[own_name] = self._check(pod, claim)
            await self._tell(raw, prepared[own_name])
        self._prepared[uid] = prepared

    def uuids(self, pod: Pod, container: Container) -> tuple[str, ...]:
        """Of the GPUs and MIG instances that a container of a prepared pod gets."""
        prepared = self._prepared.get(pod.metadata.uid, {})
        given = [
            self._uuids[result.device]
            for claim in container.resources.claims
            for result in prepared.get(claim.name, ())
            if self._is_own(result) and _concerns(result, claim.request)
        ]
        return tuple(dict.fromkeys(given))

    def forget(self, pod: Pod) -> None:
        self._prepared.pop(pod.metadata.uid, None)

    # -- parts ---------------------------------------------------------------------------------

    async def _fetch(self, pod: Pod, name: str) -> dict[str, Any]:
        try:
            return await self._context.api.get(
                RESOURCE_CLAIMS, name, namespace=pod.metadata.namespace
            )
        except errors.NotFound as missing:
            raise Unprepared(f"fetch ResourceClaim {name}: {missing.message}") from missing

    def _check(self, pod: Pod, claim: ResourceClaim) -> tuple[DeviceResult, ...]:
        meta, name = pod.metadata, claim.metadata.name
        allocation = claim.status.allocation
        if allocation is None:
            raise Unprepared(f"ResourceClaim {name}: not allocated")
        if all(each.uid != meta.uid for each in claim.status.reserved_for):
            who, what = f"{meta.name} ({meta.uid})", f"{name} ({claim.metadata.uid})"
            raise Unprepared(f"pod {who} is not allowed to use ResourceClaim {what}")
        for result in allocation.devices.results:
            if result.driver == DRA_DRIVER and self._uuids:
                if not self._is_own(result):
                    failed = f"NodePrepareResources failed for ResourceClaim {name}"
                    raise Unprepared(f"{failed}: unknown device {result.pool}/{result.device}")
            elif not self._simulated:
                raise Unprepared(f"DRA driver {result.driver} is not registered")
        return allocation.devices.results

    def _is_own(self, result: DeviceResult) -> bool:
        here = (result.driver, result.pool) == (DRA_DRIVER, self._context.config.name)
        return here and result.device in self._uuids

    async def _tell(self, claim: dict[str, Any], results: Sequence[DeviceResult]) -> None:
        """Say in the claim's status which devices are ready."""
        meta, present = claim["metadata"], claim["status"].get("devices") or []
        told = {(each["driver"], each["pool"], each["device"]) for each in present}
        ready = [
            self._status(result)
            for result in results
            if self._is_own(result) and (result.driver, result.pool, result.device) not in told
        ]
        if not ready:
            return
        patch = {
            "metadata": {"resourceVersion": meta["resourceVersion"]},
            "status": {"devices": [*present, *ready]},
        }
        await self._context.driver.patch(
            RESOURCE_CLAIMS,
            meta["name"],
            patch,
            namespace=meta["namespace"],
            subresource="status",
            type=bytes,
        )

    def _status(self, result: DeviceResult) -> dict[str, Any]:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "Prepared",
            "message": f"{self._uuids[result.device]} is ready on {self._context.config.name}",
            "lastTransitionTime": text(self._context.clock.now()),
        }
        place = {"driver": result.driver, "pool": result.pool, "device": result.device}
        return {**place, "conditions": [ready]}


def _named(pod: Pod) -> Iterator[tuple[str, str]]:
    """The pod's claims: its own name for each, and that of the ResourceClaim."""
    made = {each.name: each for each in pod.status.resource_claim_statuses}
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_name
        if name is None:
            if claim.name not in made:
                meta = pod.metadata
                why = f'pod "{meta.namespace}/{meta.name}": ResourceClaim not created yet'
                raise Unprepared(why)
            name = made[claim.name].resource_claim_name
        if name is not None:  # no claim was needed
            yield claim.name, name


def _concerns(result: DeviceResult, request: str) -> bool:
    return not request or result.request.partition("/")[0] == request
