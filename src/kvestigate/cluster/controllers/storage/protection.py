"""Claims and volumes that are deleted stay until nobody uses them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvestigate.client.api import PatchType
from kvestigate.client.cache import Change, Key
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import CLAIMS, PODS, VOLUMES
from kvestigate.kube.views.pods import Pod

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
_CLAIM = "claim"


def claims_of(pod: Pod) -> list[str]:
    """Names of the claims that a pod holds; a finished one holds none."""
    if pod.finished:
        return []
    named = [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim
    ]
    ephemeral = [
        f"{pod.metadata.name}-{volume.name}" for volume in pod.spec.volumes if volume.ephemeral
    ]
    return named + ephemeral


def _places(pod: Pod) -> tuple[str, ...]:
    return tuple(f"{pod.metadata.namespace}/{name}" for name in claims_of(pod))


class ClaimProtectionController:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._claims = context.watch(CLAIMS, owners.itself)
        self._pods = context.watch(PODS, self._of_pod)
        self._pods.add_index(_CLAIM, _places)

    def _of_pod(self, change: Change[Pod]) -> Iterable[Key]:
        if change.old is not None:
            held = claims_of(change.new) if change.new else []
            for name in claims_of(change.old):
                if name not in held:
                    yield change.key.sibling(name)

    async def reconcile(self, key: Key) -> float | None:
        claim = self._claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is None:
            return None
        users = self._pods.find(_CLAIM, f"{key.namespace}/{key.name}")
        if CLAIM_FINALIZER in claim.metadata.finalizers and not users:
            patch = _without(claim, CLAIM_FINALIZER)
            await self._context.patch(CLAIMS, claim, patch, type=PatchType.STRATEGIC)
        return None


class VolumeProtectionController:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._volumes = context.watch(VOLUMES, owners.itself)

    async def reconcile(self, key: Key) -> float | None:
        volume = self._volumes.get(key)
        if volume is None or volume.metadata.deletion_timestamp is None:
            return None
        free = volume.status.phase != "Bound"
        if VOLUME_FINALIZER in volume.metadata.finalizers and free:
            patch = _without(volume, VOLUME_FINALIZER)
            await self._context.patch(VOLUMES, volume, patch, type=PatchType.STRATEGIC)
        return None


def _without(view: Any, finalizer: str) -> dict[str, Any]:
    gone = {"$deleteFromPrimitiveList/finalizers": [finalizer]}
    return {"metadata": {"uid": view.metadata.uid, **gone}}
