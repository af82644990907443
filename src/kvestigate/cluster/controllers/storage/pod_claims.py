"""What pods have made for them: the claims of ephemeral volumes."""

from __future__ import annotations

from typing import Any

from kvestigate import errors
from kvestigate.client.cache import Key
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import CLAIMS, PODS
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.kube.views.pods import Pod


def waits(pod: Pod) -> bool:
    return not pod.finished and pod.metadata.deletion_timestamp is None


def from_template(template: Any, pod: Pod, **metadata: Any) -> dict[str, Any]:
    """The metadata of an object of the pod, with the labels and annotations of its template."""
    given = template.get("metadata") or {}
    return {
        "namespace": pod.metadata.namespace,
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "ownerReferences": [owners.controller_reference(PODS, pod)],
        **metadata,
    }


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
        if not missing or not waits(pod):
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
        metadata = from_template(template, pod, name=name)
        try:
            await self._context.create(
                CLAIMS, body | {"metadata": metadata, "spec": template.get("spec") or {}}
            )
        except errors.AlreadyExists:
            pass
