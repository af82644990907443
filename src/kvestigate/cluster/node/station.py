"""What the workers of one node share: the API, the host, the clock, and what they ask for."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import PODS, Api, PatchType
from kvestigate.client.informer import Informer, Key
from kvestigate.client.recorder import News, Recorder
from kvestigate.cluster.node.addresses import Addresses
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.container_env import (
    CONFIG_MAP,
    SECRET,
    Data,
    MissingReference,
    Reference,
    Surroundings,
)
from kvestigate.cluster.node.gpu import exporter
from kvestigate.cluster.node.gpu.exporter import GpuFigures
from kvestigate.cluster.node.gpu.model import EXPORTS
from kvestigate.cluster.node.hosts.interface import Host, Process
from kvestigate.cluster.node.net.network import NodeNetwork
from kvestigate.cluster.node.pods import Pod, TokenSource
from kvestigate.cluster.node.volumes import Claimed
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.network import Service

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
_PROVISIONED = "pv.kubernetes.io/provisioned-by"
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


@dataclass(frozen=True, slots=True)
class Station:
    api: Api
    host: Host
    clock: Clock
    config: NodeConfig
    recorder: Recorder
    addresses: Addresses
    services: Informer[Service]
    allocatable: dict[str, str]
    network: NodeNetwork | None
    """None: pods share the machine's."""
    figures: GpuFigures
    wake: Callable[[Key], None]
    """Ask for a pod to be looked at again."""

    def tell(self, pod: Pod, type: str, reason: str, message: str, *, container: str = "") -> None:
        """An event about a pod, or one of its containers."""
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
            "resourceVersion": pod.metadata.resource_version,
        }
        if container:
            kind = "containers"
            if any(one.name == container for one in pod.spec.init_containers):
                kind = "initContainers"
            elif any(one.name == container for one in pod.spec.ephemeral_containers):
                kind = "ephemeralContainers"
            about["fieldPath"] = f"spec.{kind}{{{container}}}"
        self.recorder.tell(
            News(tuple(about.items()), "kubelet", type, reason, message, host=self.config.name)
        )

    def pod_ip(self, pod: Pod) -> str:
        if pod.spec.host_network:
            return self.config.address
        return self.addresses.take(pod.metadata.uid, pod.status.pod_ip)

    def release(self, pod: Pod) -> None:
        """The pod is gone: its address may be another's."""
        self.addresses.release(pod.metadata.uid)
        if self.network is not None:
            self.network.forget(pod.metadata.uid)

    async def dial(self, process: Process, port: int, *, host: str = "") -> tuple[str, int]:
        """Where this process reaches a port of a container, or of a `host` that its spec names."""
        if port == exporter.PORT and EXPORTS in process.env and not host:
            return await self.figures.address()
        if self.network is None:
            return host or self.host.dial_address(process), port
        if host:
            return self.network.locate(host, port)
        return self.network.reach(process.key.pod_uid, port)

    async def surroundings(self, pod: Pod, references: Iterable[Reference]) -> Surroundings:
        wanted = sorted(set(references))
        found = await asyncio.gather(*(self._data(pod, one) for one in wanted))
        return Surroundings(
            data={one: data for one, (data, _) in zip(wanted, found, strict=True)},
            binary={one: keys for one, (_, keys) in zip(wanted, found, strict=True)},
            services=tuple(self.services),
            host_ip=self.config.address,
            pod_ip=self.pod_ip(pod),
            allocatable=self.allocatable,
            # In a network of their own, containers reach it at its Service's address.
            api=self.config.api_address if self.network is None else None,
        )

    async def claim(self, pod: Pod, name: str) -> Claimed:
        """The directory behind a claim."""
        namespace = pod.metadata.namespace
        try:
            claim = await self.api.get(CLAIMS, name, namespace=namespace)
            volume_name = (claim.get("spec") or {}).get("volumeName", "")
            if (claim.get("status") or {}).get("phase") != "Bound" or not volume_name:
                raise MissingReference(f'persistentvolumeclaim "{name}" is not bound')
            volume = await self.api.get(PERSISTENT_VOLUMES, volume_name)
        except errors.NotFound as missing:
            raise MissingReference(missing.message) from missing
        spec = volume.get("spec") or {}
        path = (spec.get("hostPath") or spec.get("local") or {}).get("path")
        if not path:
            raise MissingReference(f'persistentvolume "{volume_name}" is no directory of a node')
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
            raise MissingReference(f"no token for {account}: {refused.message}") from refused
        return str(answer["status"]["token"])

    async def _data(self, pod: Pod, reference: Reference) -> tuple[Data | None, frozenset[str]]:
        """And the keys whose values are no text."""
        plural, name = reference
        resource = CONFIG_MAPS if plural == CONFIG_MAP else SECRETS
        try:
            found = await self.api.get(resource, name, namespace=pod.metadata.namespace)
        except errors.NotFound:
            return None, frozenset()
        if plural == SECRET:
            return _decoded(found.get("data")), frozenset()
        plain = {key: value.encode() for key, value in (found.get("data") or {}).items()}
        binary = _decoded(found.get("binaryData"))
        return plain | binary, frozenset(binary)

    async def patch_status(self, pod: Pod, status: dict[str, Any]) -> None:
        """Write a pod's status, if the pod is still the same one."""
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        await self.api.patch(
            PODS,
            pod.metadata.name,
            patch,
            PatchType.STRATEGIC,
            namespace=pod.metadata.namespace,
            subresource="status",
            type=bytes,
        )


def _decoded(data: dict[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (data or {}).items()}
