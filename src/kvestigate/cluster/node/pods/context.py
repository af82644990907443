"""What the workers of one node share: the API, the host, the clock, addresses and network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvestigate.aio.clock import Clock
from kvestigate.client.api import PODS, Api, PatchType
from kvestigate.client.cache import Key
from kvestigate.client.informer import Informer
from kvestigate.client.recorder import News, Recorder
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.gpu import exporter
from kvestigate.cluster.node.gpu.exporter import GpuFigures
from kvestigate.cluster.node.gpu.model import EXPORTS
from kvestigate.cluster.node.hosts.interface import Host, Process
from kvestigate.cluster.node.net.addresses import Addresses
from kvestigate.cluster.node.net.network import NodeNetwork
from kvestigate.cluster.node.pods import model_server
from kvestigate.cluster.node.pods.model_server import SERVES, ModelServers
from kvestigate.cluster.node.spec.pod import Pod
from kvestigate.kube.views.network import Service


@dataclass(frozen=True, slots=True)
class NodeContext:
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
    models: ModelServers
    driver: Api
    """As the driver of the node's GPUs, which kubelets may not write for."""
    wake: Callable[[Key], None]
    """Ask for a pod to be looked at again."""

    def event(self, pod: Pod, type: str, reason: str, message: str, *, container: str = "") -> None:
        """Record an event about a pod, or about one of its containers."""
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
            if any(candidate.name == container for candidate in pod.spec.init_containers):
                kind = "initContainers"
            elif any(candidate.name == container for candidate in pod.spec.ephemeral_containers):
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
        if port == model_server.PORT and SERVES in process.env and not host:
            return await self.models.address(process)
        if self.network is None:
            return host or "127.0.0.1", port
        if host:
            return self.network.locate(host, port)
        return self.network.reach(process.key.pod_uid, port)

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
