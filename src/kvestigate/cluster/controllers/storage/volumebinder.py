"""PersistentVolumeClaims: bind them to volumes, and make volumes of the local-path class."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kvestigate import errors
from kvestigate.client.cache import Change, Key, key_of
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import CLAIMS, NODES, STORAGE_CLASSES, VOLUMES
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.storage import volumes
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    StorageClass,
)


class ClaimController(Reconciler[PersistentVolumeClaim]):
    """Binds claims."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, CLAIMS)
        self._volumes = context.watch(VOLUMES, self._of_volume)
        self._classes = context.watch(STORAGE_CLASSES, self._of_class)
        self._nodes = context.cache(NODES)

    def _of_volume(self, change: Change[PersistentVolume]) -> Iterable[Key]:
        for volume in change.views:
            if (reference := volume.spec.claim_ref) is not None:
                yield Key(reference.namespace, reference.name)
        if change.new is not None and change.new.spec.claim_ref is None:
            yield from self._pending()

    def _of_class(self, change: Change[StorageClass]) -> Iterable[Key]:
        return self._pending()

    def _pending(self) -> Iterable[Key]:
        for claim in self._objects:
            if claim.status.phase != "Bound":
                yield key_of(claim)

    async def _reconcile(self, claim: PersistentVolumeClaim) -> float | None:
        if claim.metadata.deletion_timestamp is not None:
            return None
        if claim.spec.volume_name:
            await self._keep(claim)
            return None
        claim = await self._with_class(claim)
        storage_class = self._class_of(claim)
        volume = volumes.match(claim, list(self._volumes))
        waits = _waits(storage_class, claim)
        if volume is not None and (not waits or volumes.is_claimed_by(volume, claim)):
            await self._bind(claim, volume)
        elif waits:
            message = "waiting for first consumer to be created before binding"
            self._tell(claim, "WaitForFirstConsumer", message)
            await self._phase(claim, "Pending")
        else:
            await self._phase(claim, "Pending")
            await self._provision(claim, storage_class)
        return None

    async def _with_class(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """A claim that names no class gets the default one as soon as there is one."""
        if claim.spec.storage_class_name is not None:
            return claim
        default = volumes.default_class(self._classes)
        if default is None:
            return claim
        patch = {"spec": {"storageClassName": default.metadata.name}}
        return await self._context.patch(CLAIMS, claim, patch)

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        name = claim.spec.storage_class_name
        return self._classes.get(Key("", name)) if name else None

    async def _provision(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass | None
    ) -> None:
        if storage_class is None:
            if name := claim.spec.storage_class_name:
                message = f'storageclass.storage.k8s.io "{name}" not found'
                self._tell(claim, "ProvisioningFailed", message, WARNING)
                return
            message = "no persistent volumes available for this claim and no storage class is set"
            self._tell(claim, "FailedBinding", message)
            return
        if storage_class.provisioner != volumes.PROVISIONER:
            message = (
                "waiting for a volume to be created either by the external provisioner "
                f"'{storage_class.provisioner}' or manually"
            )
            self._tell(claim, "ExternalProvisioning", message)
            return
        node = self._node_for(claim)
        if node is None:
            self._tell(claim, "ProvisioningFailed", "no schedulable node for the volume", WARNING)
            return
        body = volumes.provisioned(claim, storage_class, node)
        try:
            volume = await self._context.create(VOLUMES, body)
        except errors.AlreadyExists:
            return  # the cache will tell of it
        message = f"Successfully provisioned volume {volume.metadata.name}"
        self._tell(claim, "ProvisioningSucceeded", message)
        await self._bind(claim, volume)

    def _node_for(self, claim: PersistentVolumeClaim) -> Node | None:
        chosen = claim.metadata.annotations.get(volumes.SELECTED_NODE)
        if chosen:
            return self._nodes.get(Key("", chosen))
        free = [node for node in self._nodes if not node.spec.unschedulable]
        return min(free, key=lambda node: node.metadata.name, default=None)

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            note = {volumes.BOUND_BY_CONTROLLER: "yes"}
            patch = {
                # Only over the version that was free: another claim may want it too.
                "metadata": {
                    "resourceVersion": volume.metadata.resource_version,
                    "annotations": note,
                },
                "spec": {"claimRef": volumes.claim_reference(claim)},
            }
            volume = await self._context.patch(VOLUMES, volume, patch)
        notes = {volumes.BIND_COMPLETED: "yes", volumes.BOUND_BY_CONTROLLER: "yes"}
        bound = await self._context.patch(
            CLAIMS,
            claim,
            {
                "metadata": {"annotations": notes},
                "spec": {"volumeName": volume.metadata.name},
            },
        )
        await self._phase(bound, "Bound", volume)

    async def _keep(self, claim: PersistentVolumeClaim) -> None:
        """A claim that names its volume: bound if the volume agrees, lost if it is gone."""
        volume = self._volumes.get(Key("", claim.spec.volume_name))
        if volume is None:
            was = volumes.BIND_COMPLETED in claim.metadata.annotations
            await self._phase(claim, "Lost" if was else "Pending")
            return
        unbound = volumes.is_claimed_by(volume, claim) and claim.status.phase != "Bound"
        if volume.spec.claim_ref is None or unbound:
            await self._bind(claim, volume)
        elif volumes.is_claimed_by(volume, claim) and (size := volumes.grown(claim, volume)):
            await self._grow(claim, volume, size)

    async def _grow(
        self, claim: PersistentVolumeClaim, volume: PersistentVolume, size: str
    ) -> None:
        """Admission has already checked that the class allows it."""
        patch = {"spec": {"capacity": {"storage": size}}}
        volume = await self._context.patch(VOLUMES, volume, patch)
        await self._phase(claim, "Bound", volume)
        self._tell(claim, "VolumeResizeSuccessful", "Resize volume succeeded")

    async def _phase(
        self, claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None = None
    ) -> None:
        status = msgspec.structs.replace(claim.status, phase=phase)
        if volume is not None:
            status = PersistentVolumeClaimStatus(
                phase=phase,
                access_modes=volume.spec.access_modes,
                capacity=volume.spec.capacity,
                conditions=claim.status.conditions,
            )
        await self._put_status(claim, status)


class VolumeController(Reconciler[PersistentVolume]):
    """Keeps the phase of volumes, and deletes those of ours that have lost their claim."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, VOLUMES)
        self._claims = context.watch(CLAIMS, self._of_claim)

    def _of_claim(self, change: Change[PersistentVolumeClaim]) -> Iterable[Key]:
        for claim in change.views:
            if claim.spec.volume_name:
                yield Key("", claim.spec.volume_name)

    async def _reconcile(self, volume: PersistentVolume) -> float | None:
        reference = volume.spec.claim_ref
        owner = None
        if reference is not None:
            owner = self._claims.get(Key(reference.namespace, reference.name))
        status = msgspec.structs.replace(volume.status, phase=volumes.phase_of(volume, owner))
        # First the phase: a volume that counts as bound is protected from its deletion.
        await self._put_status(volume, status)
        ours = volume.metadata.annotations.get(volumes.PROVISIONED_BY) == volumes.PROVISIONER
        reclaimed = volume.spec.persistent_volume_reclaim_policy == "Delete"
        leaving = volume.metadata.deletion_timestamp is not None
        if status.phase == "Released" and ours and reclaimed and not leaving:
            await self._context.delete(VOLUMES, volume)
        return None


def _waits(storage_class: StorageClass | None, claim: PersistentVolumeClaim) -> bool:
    if storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer":
        return False
    return volumes.SELECTED_NODE not in claim.metadata.annotations
