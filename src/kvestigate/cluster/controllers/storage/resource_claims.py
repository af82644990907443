"""Claims of devices: made for pods from templates, reserved, and freed when their pods have ended.

The scheduler allocates claims and reserves them for the pods that it places. What is left for this
controller are pods that somebody else placed, and the end: a reservation goes with its pod, the
allocation with the last reservation, and a claim that was made for a pod with the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.client.api import PatchType
from kvestigate.client.cache import Change, Key, key_of
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import CLAIM_TEMPLATES, PODS, RESOURCE_CLAIMS
from kvestigate.cluster.controllers.objects import ResourceClaimTemplate
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.storage.pod_claims import from_template, waits
from kvestigate.kube.views.devices import Consumer, ResourceClaim
from kvestigate.kube.views.pods import Pod, PodResourceClaim, PodResourceClaimStatus

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
_FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim as long as devices are allocated to it."""
_BASE_MAX = 57
"""So many characters of a claim's name come from the pod; the server adds the others."""
_USERS, _TEMPLATE_USERS = "claim users", "template users"
"""Indexes of pods: `namespace/name` of the claims and of the templates that they name."""


class _Failed(Exception):
    """A claim was not made; the message is that of the event."""


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


def _claims_of(pod: Pod) -> Iterator[Key]:
    """The claims that a pod names, or that were made for it."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_name or made.get(claim.name)
        if name is not None:
            yield Key(pod.metadata.namespace, name)


def _templates_of(pod: Pod) -> Iterator[Key]:
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_template_name is not None:
            yield Key(pod.metadata.namespace, claim.resource_claim_template_name)


def _pod_and_claims(change: Change[Pod]) -> Iterable[Key]:
    """The pod, and its claims once it has ended."""
    yield change.key
    pod = change.new or change.old
    if pod is not None and (change.new is None or _is_done(pod)):
        yield from _claims_of(pod)


class ResourceClaimController(Reconciler[Pod]):
    """Makes the ResourceClaims of pods that name templates, and frees claims of pods that ended.

    Keys name pods and claims alike: whichever of the two exists is reconciled.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context, PODS, _pod_and_claims)
        self._objects.add_index(_USERS, lambda pod: tuple(map(str, _claims_of(pod))))
        self._objects.add_index(_TEMPLATE_USERS, lambda pod: tuple(map(str, _templates_of(pod))))
        self._templates = context.watch(CLAIM_TEMPLATES, self._of_template)
        self._claims = context.watch(RESOURCE_CLAIMS, self._of_claim)

    def _of_template(self, change: Change[ResourceClaimTemplate]) -> Iterable[Key]:
        return map(key_of, self._objects.find(_TEMPLATE_USERS, str(change.key)))

    def _of_claim(self, change: Change[ResourceClaim]) -> Iterable[Key]:
        yield change.key
        yield from map(key_of, self._objects.find(_USERS, str(change.key)))

    async def reconcile(self, key: Key) -> float | None:
        claim = self._claims.get(key)
        if claim is not None:
            await self._free(claim)
        return await super().reconcile(key)

    # -- claims of pods that ended ---------------------------------------------------------------

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
        return await self._write(claim, status)

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

    # -- claims of pods that begin ---------------------------------------------------------------

    async def _reconcile(self, pod: Pod) -> float | None:
        if not pod.spec.resource_claims or not waits(pod):
            return None
        await self._make_all(pod)
        if pod.spec.node_name:
            await self._reserve_all(pod)
        return None

    async def _make_all(self, pod: Pod) -> None:
        made = {each.name: each for each in pod.status.resource_claim_statuses}
        before = dict(made)
        for claim in pod.spec.resource_claims:
            template = claim.resource_claim_template_name
            if template is None or await self._is_made(pod, made.get(claim.name)):
                continue
            try:
                name = await self._make(pod, claim, template)
            except _Failed as failure:
                why = f"PodResourceClaim {claim.name}: {failure}"
                self._tell(pod, "FailedResourceClaimCreation", why, WARNING)
                return  # the template's arrival brings us back
            made[claim.name] = PodResourceClaimStatus(claim.name, name)
        if made != before:
            statuses = [msgspec.to_builtins(status) for status in made.values()]
            patch = {"status": {"resourceClaimStatuses": statuses}}
            await self._context.patch(
                PODS, pod, patch, type=PatchType.STRATEGIC, subresource="status"
            )

    async def _is_made(self, pod: Pod, status: PodResourceClaimStatus | None) -> bool:
        """Whether the claim of a template is there, or none is needed."""
        if status is None:
            return False
        if status.resource_claim_name is None:
            return True
        claim = self._claims.get(Key(pod.metadata.namespace, status.resource_claim_name))
        if claim is None:  # perhaps the claim is newer than the cache
            try:
                claim = await self._context.api.get(
                    RESOURCE_CLAIMS.resource,
                    status.resource_claim_name,
                    namespace=pod.metadata.namespace,
                    type=ResourceClaim,
                )
            except errors.NotFound:
                return False
        owner = owners.controller_of(claim)
        return owner is not None and owner.uid == pod.metadata.uid

    async def _make(self, pod: Pod, claim: PodResourceClaim, template: str) -> str:
        """The name of the claim of a pod."""
        for present in self._claims.find(owners.OWNER, pod.metadata.uid):
            if present.metadata.annotations.get(POD_CLAIM) == claim.name:
                return present.metadata.name
        found = self._templates.get(Key(pod.metadata.namespace, template))
        if found is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template}" not found'
            raise _Failed(f'resource claim template "{template}": {missing}')
        metadata = from_template(
            found.spec, pod, generateName=_base_name(pod.metadata.name, claim.name)
        )
        metadata["annotations"][POD_CLAIM] = claim.name
        resource = RESOURCE_CLAIMS.resource
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        try:
            created = await self._context.create(
                RESOURCE_CLAIMS, body | {"spec": found.spec.get("spec") or {}}
            )
        except errors.ApiError as refusal:
            why = f"PodResourceClaim {claim.name}: create ResourceClaim : {refusal.message}"
            self._tell(pod, "FailedResourceClaimCreation", why, WARNING)
            raise  # to be tried again
        return created.metadata.name

    async def _reserve_all(self, pod: Pod) -> None:
        """Reserve allocated claims for a pod that no scheduler has placed."""
        for key in _claims_of(pod):
            claim = self._claims.get(key)
            if claim is None or claim.status.allocation is None:
                continue
            reserved = claim.status.reserved_for
            if any(each.uid == pod.metadata.uid for each in reserved):
                continue
            consumer = Consumer("pods", pod.metadata.name, pod.metadata.uid)
            await self._write(claim, {"reservedFor": msgspec.to_builtins((*reserved, consumer))})

    async def _write(self, claim: ResourceClaim, status: dict[str, Any]) -> ResourceClaim:
        """Change the status of exactly this version of a claim."""
        version = {"resourceVersion": claim.metadata.resource_version}
        return await self._context.patch(
            RESOURCE_CLAIMS, claim, {"metadata": version, "status": status}, subresource="status"
        )
