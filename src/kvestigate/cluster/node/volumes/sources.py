"""What volumes and environments are made from, fetched from the API."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api
from kvestigate.cluster.node.spec.environment import (
    Data,
    MissingReference,
)
from kvestigate.cluster.node.spec.pod import (
    CONFIG_MAP,
    SECRET,
    Pod,
    Reference,
    TokenSource,
)
from kvestigate.kube.resources import Resource

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
_PROVISIONED = "pv.kubernetes.io/provisioned-by"
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_SPENT = 0.8
"""The part of its life after which a token is replaced, as kubelets do."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The node's directory behind a claim."""

    path: str
    takes_group: bool = True
    """Whether a pod's `fsGroup` becomes its group: not for a hostPath that a person chose."""


@dataclass(frozen=True, slots=True)
class Sources:
    api: Api

    async def data(self, pod: Pod, reference: Reference) -> tuple[Data | None, frozenset[str]]:
        """The data of a ConfigMap or Secret, None if it is missing, and the binary keys."""
        plural, name = reference
        resource = CONFIG_MAPS if plural == CONFIG_MAP else SECRETS
        try:
            obj = await self.api.get(resource, name, namespace=pod.metadata.namespace)
        except errors.NotFound:
            return None, frozenset()
        if plural == SECRET:
            return _decoded(obj.get("data")), frozenset()
        plain = {key: value.encode() for key, value in (obj.get("data") or {}).items()}
        binary = _decoded(obj.get("binaryData"))
        return plain | binary, frozenset(binary)

    async def bound_volume(self, pod: Pod, name: str) -> dict[str, Any]:
        """The volume of a claim; MissingReference if the claim is missing or not bound."""
        namespace = pod.metadata.namespace
        failed = f"error processing PVC {namespace}/{name}:"
        try:
            claim = await self.api.get(CLAIMS, name, namespace=namespace)
        except errors.NotFound as missing:
            why = f"failed to fetch PVC from API server: {missing.message}"
            raise MissingReference(f"{failed} {why}") from missing
        volume_name = (claim.get("spec") or {}).get("volumeName", "")
        if (claim.get("status") or {}).get("phase") != "Bound" or not volume_name:
            raise MissingReference(f"{failed} PVC is not bound")
        try:
            return await self.api.get(PERSISTENT_VOLUMES, volume_name)
        except errors.NotFound as missing:
            why = f"failed to fetch PV {volume_name} from API server: {missing.message}"
            raise MissingReference(f"error processing PVC {namespace}/{name}: {why}") from missing

    async def claim(self, pod: Pod, name: str) -> Claimed:
        """The directory behind a claim."""
        volume = await self.bound_volume(pod, name)
        spec = volume.get("spec") or {}
        path = (spec.get("hostPath") or spec.get("local") or {}).get("path")
        if not path:
            raise MissingReference(
                f'persistentvolume "{volume["metadata"]["name"]}" has a type that this node does '
                "not support: "
                "use hostPath or local"
            )
        # Kubelets give no hostPath away; one that was made for the claim stands for a disk.
        made_for_it = _PROVISIONED in (volume["metadata"].get("annotations") or {})
        return Claimed(str(path), takes_group=made_for_it or "local" in spec)

    async def token(self, pod: Pod, wanted: TokenSource) -> str:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [wanted.audience] if wanted.audience else [],
                "expirationSeconds": wanted.expiration_seconds,
                "boundObjectRef": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": pod.metadata.name,
                    "uid": pod.metadata.uid,
                },
            },
        }
        account = pod.spec.service_account_name or "default"
        try:
            answer = await self.api.create(
                SERVICE_ACCOUNTS,
                body,
                namespace=pod.metadata.namespace,
                name=account,
                subresource="token",
            )
        except errors.ApiError as refused:
            raise MissingReference(
                f'cannot get a token for service account "{account}": {refused.message}'
            ) from refused
        return str(answer["status"]["token"])


Issue = Callable[[Pod, TokenSource], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class _Issued:
    text: str
    renew_at: float


class Tokens:
    """Hands out the same token for as long as it is good."""

    def __init__(self, issue: Issue, clock: Clock) -> None:
        self._issue = issue
        self._clock = clock
        self._issued: dict[tuple[str, str, str], _Issued] = {}
        """By the pod's uid, audience and path."""

    async def get(self, pod: Pod, wanted: TokenSource) -> str:
        key = (pod.metadata.uid, wanted.audience, wanted.path)
        kept = self._issued.get(key)
        if kept is None or self._clock.now() >= kept.renew_at:
            begun = self._clock.now()
            text = await self._issue(pod, wanted)
            kept = _Issued(text, begun + wanted.expiration_seconds * _SPENT)
            self._issued[key] = kept
        return kept.text

    def forget(self, pod_uid: str) -> None:
        for key in [key for key in self._issued if key[0] == pod_uid]:
            del self._issued[key]


def _decoded(data: dict[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (data or {}).items()}
