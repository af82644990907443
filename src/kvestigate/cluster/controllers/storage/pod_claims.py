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
from kvestigate.kube.views.pods import Pod, PodResourceClaim, PodResourceClaimStatus

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"


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
    """Makes the ResourceClaims of pods that name templates."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, PODS)
        self._templates = context.watch(CLAIM_TEMPLATES, self._of_template)
        self._claims = context.cache(RESOURCE_CLAIMS)

    def _of_template(self, change: Change[ResourceClaimTemplate]) -> Iterable[Key]:
        for pod in self._objects.find(owners.NAMESPACE, change.key.namespace):
            if any(
                claim.resource_claim_template_name == change.key.name
                for claim in pod.spec.resource_claims
            ):
                yield key_of(pod)

    async def _reconcile(self, pod: Pod) -> float | None:
        if not pod.spec.resource_claims or not _waits(pod):
            return None
        made = {each.name: each for each in pod.status.resource_claim_statuses}
        for claim in pod.spec.resource_claims:
            if claim.resource_claim_template_name is not None and claim.name not in made:
                name = await self._make(pod, claim, claim.resource_claim_template_name)
                if name is None:
                    return None  # the template's arrival brings us back
                made[claim.name] = PodResourceClaimStatus(claim.name, name)
        statuses = [msgspec.to_builtins(status) for status in made.values()]
        if len(made) > len(pod.status.resource_claim_statuses):
            patch = {"status": {"resourceClaimStatuses": statuses}}
            await self._context.patch(
                PODS, pod, patch, type=PatchType.STRATEGIC, subresource="status"
            )
        return None

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
        name = f"{pod.metadata.name}-{claim.name}-"
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
