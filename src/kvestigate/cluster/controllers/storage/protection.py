"""Keeps deleted claims and volumes until no pod uses them."""

from __future__ import annotations

from collections.abc import Iterable

from kvestigate.client.api import PatchType
from kvestigate.client.cache import Change, Key, V, key_of
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import CLAIMS, PODS, VOLUMES, Kind
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim

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


class ClaimProtectionController(Reconciler[PersistentVolumeClaim]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, CLAIMS)
        self._pods = context.watch(PODS, self._of_pod)
        self._pods.add_index(_CLAIM, _places)

    def _of_pod(self, change: Change[Pod]) -> Iterable[Key]:
        if change.old is not None:
            held = claims_of(change.new) if change.new else []
            for name in claims_of(change.old):
                if name not in held:
                    yield change.key.sibling(name)

    async def _reconcile(self, claim: PersistentVolumeClaim) -> float | None:
        if not self._pods.find(_CLAIM, str(key_of(claim))):
            await _unprotect(self._context, CLAIMS, claim, CLAIM_FINALIZER)
        return None


class VolumeProtectionController(Reconciler[PersistentVolume]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, VOLUMES)

    async def _reconcile(self, volume: PersistentVolume) -> float | None:
        if volume.status.phase != "Bound":
            await _unprotect(self._context, VOLUMES, volume, VOLUME_FINALIZER)
        return None


async def _unprotect(context: Context, kind: Kind[V], view: V, finalizer: str) -> None:
    """Let an object that is deleted go."""
    metadata = view.metadata
    if metadata.deletion_timestamp is not None and finalizer in metadata.finalizers:
        gone = {"$deleteFromPrimitiveList/finalizers": [finalizer]}
        patch = {"metadata": {"uid": metadata.uid, **gone}}
        await context.patch(kind, view, patch, type=PatchType.STRATEGIC)
