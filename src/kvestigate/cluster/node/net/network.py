"""The pods' network of one process: shared by its nodes, and each node's part of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.client.api import Api
from kvestigate.client.informer import Informer
from kvestigate.cluster.node.hosts import machine, resolv_conf
from kvestigate.cluster.node.hosts.resolv_conf import Resolver
from kvestigate.cluster.node.net import files
from kvestigate.cluster.node.net.addresses import Claim, claim
from kvestigate.cluster.node.net.dns_server import DnsServer
from kvestigate.cluster.node.net.routing import Cluster, PodRoutes
from kvestigate.cluster.node.net.services import Services
from kvestigate.cluster.node.net.translation import DNS_ADDRESS, Address, Ports, is_pod, on_machine
from kvestigate.cluster.node.net.warden import Warden
from kvestigate.cluster.node.spec.pod import Pod
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.network import EndpointSlice, Service

SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")

_NET_BIND_SERVICE = 10
_LOCALHOST = "127.0.0.1"


class ClusterNetwork:
    """Follows Services, resolves names, and answers for the calls of all pods."""

    def __init__(
        self, api: Api, services: Informer[Service], *, api_address: tuple[str, int] | None
    ) -> None:
        """`services` is an informer that the caller runs."""
        self.machine = resolv_conf.read(_read(resolv_conf.PATH))
        self._slices: Informer[EndpointSlice] = api.informer(SLICES, type=EndpointSlice)
        self._informed = services
        self._services = Services()
        self.cluster = Cluster(
            self._services,
            Ports(_first_free_port()),
            api=Address(*api_address) if api_address is not None else None,
        )
        self._warden = Warden()

    async def run(self, ready: Ready[ClusterNetwork]) -> None:
        """Until cancelled."""
        server = DnsServer(self._services, self.machine.servers)
        self.cluster.dns = await server.open()
        self._informed.subscribe(self._services.on_service)
        self._slices.subscribe(self._services.on_slice)
        try:
            async with Supervisor("network") as supervisor:
                # Whoever may not read them has pods that reach each other, but no Services.
                await self._slices.start(supervisor, "endpoint slices", patient=True)
                ready(self)
                await asyncio.get_running_loop().create_future()
        finally:
            self._warden.close()
            await server.aclose()

    def watch(self, listener: int, routes: PodRoutes) -> None:
        self._warden.watch(listener, routes)


class NodeNetwork:
    """The part of the network that belongs to the pods of one node."""

    def __init__(self, network: ClusterNetwork, node: str, directory: Path) -> None:
        self._network = network
        self._claim: Claim = claim(node, directory / ".addresses")
        self._pods: dict[str, PodNetwork] = {}
        """By uid."""

    @property
    def prefix(self) -> str:
        return self._claim.prefix

    @property
    def resolver(self) -> Resolver:
        """The machine's own."""
        return self._network.machine

    def close(self) -> None:
        self._claim.close()

    def of(self, pod: Pod, ip: str) -> PodNetwork:
        uid = pod.metadata.uid
        if uid not in self._pods:
            self._pods[uid] = PodNetwork(self._network, pod, ip)
        return self._pods[uid]

    def reach(self, pod_uid: str, port: int) -> tuple[str, int]:
        """Where on the machine a pod's port is."""
        pod = self._pods.get(pod_uid)
        return pod.reach(port) if pod is not None else (_LOCALHOST, port)

    def locate(self, host: str, port: int) -> tuple[str, int]:
        """The machine's address for a host that a spec names."""
        if not is_pod(host):
            return host, port
        return on_machine(host), self._network.cluster.ports.on_machine(port)

    def forget(self, pod_uid: str) -> None:
        self._pods.pop(pod_uid, None)


class PodNetwork:
    """The part of the network that a host needs to start the containers of one pod."""

    def __init__(self, network: ClusterNetwork, pod: Pod, ip: str) -> None:
        self._network = network
        self._asks_the_cluster = files.asks_the_cluster(pod)
        self._routes = PodRoutes(network.cluster, ip, host_network=pod.spec.host_network)

    def guard(self, listener: int, *, own_files: bool) -> None:
        """Answer the calls that are told on `listener`, which is ours from now on.

        A pod without files of its own asks the machine's name servers, so the cluster's has to
        answer in their place.
        """
        if self._asks_the_cluster and not own_files:
            machine_servers = self._network.machine.servers or (_LOCALHOST,)
            self._routes.resolvers = frozenset({DNS_ADDRESS, *machine_servers})
        self._network.watch(listener, self._routes)

    def reach(self, port: int) -> tuple[str, int]:
        if self._routes.host_network:
            return _LOCALHOST, port
        return self._routes.machine_ip, self._network.cluster.ports.on_machine(port)


def _first_free_port() -> int:
    if machine.may(_NET_BIND_SERVICE):
        return 0
    text = _read("/proc/sys/net/ipv4/ip_unprivileged_port_start").strip()
    return int(text) if text.isdigit() else 1024


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
