"""What pods have made for them: ResourceClaims of templates, claims of ephemeral volumes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.client.api import PatchType
from kvestigate.client.cache import Change, Key, key_of
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import (
    CLAIM_TEMPLATES,
    CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
)
from kvestigate.cluster.controllers.objects import ResourceClaimTemplate
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.kube.views.devices import Consumer, ResourceClaim
from kvestigate.kube.views.pods import Pod, PodResourceClaim, PodResourceClaimStatus

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"


_FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim as long as devices are allocated to it."""
_BASE_MAX = 57
"""So many characters of a claim's name come from the pod; the server adds the others."""


def _base_name(pod: str, claim: str) -> str:
    """The beginning of a claim's name, in which long names are shortened in proportion."""
    name = f"{pod}-{claim}-"
    if len(name) <= _BASE_MAX:
        return name
    start = pod[: len(pod) * _BASE_MAX // len(name)]
    return f"{start}-{claim[: len(claim) * _BASE_MAX // len(name)]}"


def _is_done(pod: Pod) -> bool:
    """Whether the pod runs no more, or never will."""
    return pod.finished or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def _pod_and_claims(change: Change[Pod]) -> Iterable[Key]:
    """The pod, and its claims once it has ended."""
    yield change.key
    pod = change.new or change.old
    if pod is None or (change.new is not None and not _is_done(pod)):
        return
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_name or made.get(claim.name)
        if name is not None:
            yield change.key.sibling(name)


def _waits(pod: Pod) -> bool:
    return not pod.finished and pod.metadata.deletion_timestamp is None


def _from_template(template: Any, pod: Pod, **metadata: Any) -> dict[str, Any]:
    """An object of the pod, with the labels and annotations of its template."""
    given = template.get("metadata") or {}
    return {
        "namespace": pod.metadata.namespace,
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "ownerReferences": [owners.controller_reference(PODS, pod)],
        **metadata,
    }


class ResourceClaimController(Reconciler[Pod]):
    """Makes the ResourceClaims of pods that name templates, and frees claims of pods that ended.

    Keys name pods and claims alike: whichever of the two exists is reconciled.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context, PODS, _pod_and_claims)
        self._templates = context.watch(CLAIM_TEMPLATES, self._of_template)
        self._claims = context.watch(RESOURCE_CLAIMS, owners.itself)

    def _of_template(self, change: Change[ResourceClaimTemplate]) -> Iterable[Key]:
        for pod in self._objects.find(owners.NAMESPACE, change.key.namespace):
            if any(
                claim.resource_claim_template_name == change.key.name
                for claim in pod.spec.resource_claims
            ):
                yield key_of(pod)

    async def reconcile(self, key: Key) -> float | None:
        claim = self._claims.get(key)
        if claim is not None:
            await self._free(claim)
        return await super().reconcile(key)

    async def _free(self, claim: ResourceClaim) -> None:
        """Drop reservations of pods that ended; without any, the allocation and the claim too."""
        reserved = claim.status.reserved_for
        remaining = tuple([each for each in reserved if await self._needs(claim, each)])
        if len(remaining) < len(reserved):
            claim = await self._release(claim, remaining)
            if not remaining:
                claim = await self._unprotect(claim)
        elif claim.metadata.deletion_timestamp is not None and not remaining:
            if claim.status.allocation is not None:
                claim = await self._release(claim, ())
            claim = await self._unprotect(claim)
        if not remaining and claim.metadata.deletion_timestamp is None and self._is_over(claim):
            await self._context.delete(RESOURCE_CLAIMS, claim)

    async def _needs(self, claim: ResourceClaim, consumer: Consumer) -> bool:
        """Whether a reservation still counts. Consumers that are no pods are left alone."""
        if (consumer.api_group, consumer.resource) != ("", "pods"):
            return True
        namespace = claim.metadata.namespace
        pod = self._objects.get(Key(namespace, consumer.name))
        if pod is None:  # perhaps the pod is newer than the cache
            try:
                pod = await self._context.api.get(
                    PODS.resource, consumer.name, namespace=namespace, type=PODS.view
                )
            except errors.NotFound:
                return False
        return pod.metadata.uid == consumer.uid and not _is_done(pod)

    async def _release(
        self, claim: ResourceClaim, remaining: tuple[Consumer, ...]
    ) -> ResourceClaim:
        """Write the reservations; the devices are free with the last one."""
        status: dict[str, Any] = {"reservedFor": msgspec.to_builtins(remaining) or None}
        if not remaining and _FINALIZER in claim.metadata.finalizers:
            status["allocation"] = None
        version = {"resourceVersion": claim.metadata.resource_version}
        return await self._context.patch(
            RESOURCE_CLAIMS, claim, {"metadata": version, "status": status}, subresource="status"
        )

    async def _unprotect(self, claim: ResourceClaim) -> ResourceClaim:
        """Remove the finalizer of an allocation that is gone."""
        finalizers = claim.metadata.finalizers
        if _FINALIZER not in finalizers or claim.status.allocation is not None:
            return claim
        kept = [each for each in finalizers if each != _FINALIZER]
        metadata = {
            "resourceVersion": claim.metadata.resource_version,
            "finalizers": kept or None,
        }
        return await self._context.patch(RESOURCE_CLAIMS, claim, {"metadata": metadata})

    def _is_over(self, claim: ResourceClaim) -> bool:
        """Whether the claim was made for a pod that has ended or was replaced."""
        owner = owners.controller_of(claim)
        if owner is None or owner.kind != "Pod":
            return False
        pod = self._objects.get(Key(claim.metadata.namespace, owner.name))
        # Claims of pods that are gone are left to the garbage collector.
        return pod is not None and (pod.metadata.uid != owner.uid or _is_done(pod))

    async def _reconcile(self, pod: Pod) -> float | None:
        if not pod.spec.resource_claims or not _waits(pod):
            return None
        await self._make_all(pod)
        return None

    async def _make_all(self, pod: Pod) -> None:
        made = {each.name: each for each in pod.status.resource_claim_statuses}
        for claim in pod.spec.resource_claims:
            if claim.resource_claim_template_name is not None and claim.name not in made:
                name = await self._make(pod, claim, claim.resource_claim_template_name)
                if name is None:
                    return  # the template's arrival brings us back
                made[claim.name] = PodResourceClaimStatus(claim.name, name)
        statuses = [msgspec.to_builtins(status) for status in made.values()]
        if len(made) > len(pod.status.resource_claim_statuses):
            patch = {"status": {"resourceClaimStatuses": statuses}}
            await self._context.patch(
                PODS, pod, patch, type=PatchType.STRATEGIC, subresource="status"
            )

    async def _make(self, pod: Pod, claim: PodResourceClaim, template: str) -> str | None:
        """The name of the claim of a pod; None if there is no template."""
        for present in self._claims.find(owners.OWNER, pod.metadata.uid):
            if present.metadata.annotations.get(POD_CLAIM) == claim.name:
                return present.metadata.name
        found = self._templates.get(Key(pod.metadata.namespace, template))
        if found is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template}" not found'
            why = f'PodResourceClaim {claim.name}: resource claim template "{template}": {missing}'
            self._tell(pod, "FailedResourceClaimCreation", why, WARNING)
            return None
        name = _base_name(pod.metadata.name, claim.name)
        metadata = _from_template(found.spec, pod, generateName=name)
        metadata["annotations"][POD_CLAIM] = claim.name
        resource = RESOURCE_CLAIMS.resource
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        created = await self._context.create(
            RESOURCE_CLAIMS, body | {"spec": found.spec.get("spec") or {}}
        )
        return created.metadata.name


class EphemeralVolumeController(Reconciler[Pod]):
    """Makes the PersistentVolumeClaims of pods with ephemeral volumes."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, PODS)
        self._claims = context.cache(CLAIMS)

    async def _reconcile(self, pod: Pod) -> float | None:
        missing = [
            volume.name
            for volume in pod.spec.volumes
            if volume.ephemeral is not None and not self._is_made(pod, volume.name)
        ]
        if not missing or not _waits(pod):
            return None
        # Caches hold pods without the templates, which hardly any pod has.
        meta = pod.metadata
        whole = await self._context.api.get(PODS.resource, meta.name, namespace=meta.namespace)
        for volume in whole["spec"]["volumes"]:
            if volume["name"] in missing:
                await self._make(pod, volume["name"], volume["ephemeral"]["volumeClaimTemplate"])
        return None

    def _is_made(self, pod: Pod, volume: str) -> bool:
        """Whether a claim of the volume's name is there, be it the pod's or, which it is told of,
        another's."""
        meta = pod.metadata
        name = f"{meta.name}-{volume}"
        present = self._claims.get(Key(meta.namespace, name))
        if present is None:
            return False
        if not any(each.uid == meta.uid for each in present.metadata.owner_references):
            other = f"PVC {meta.namespace}/{name} was not created for pod"
            why = f"{other} {meta.namespace}/{meta.name} (pod is not owner)"
            self._tell(pod, "FailedBinding", f"ephemeral volume {volume}: {why}", WARNING)
        return True

    async def _make(self, pod: Pod, volume: str, template: dict[str, Any]) -> None:
        name = f"{pod.metadata.name}-{volume}"
        resource = CLAIMS.resource
        body = {"apiVersion": resource.api_version, "kind": resource.kind}
        metadata = _from_template(template, pod, name=name)
        try:
            await self._context.create(
                CLAIMS, body | {"metadata": metadata, "spec": template.get("spec") or {}}
            )
        except errors.AlreadyExists:
            pass
