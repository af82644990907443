"""Where a pod's calls really go: PURE but for the turns that a Service's endpoints take."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvestigate.cluster.node.net.services import Services
from kvestigate.cluster.node.net.translation import (
    DNS_ADDRESS,
    DNS_PORT,
    Address,
    Ports,
    is_on_machine,
    is_pod,
    on_machine,
)

TCP, UDP = "TCP", "UDP"
_MACHINE = "127.0.0.1"
_NOWHERE = Address("", 0)
_ALL_PORTS = Ports()
KUBERNETES = ("default", "kubernetes")


@dataclass(slots=True)
class Cluster:
    """What all pods of the process share."""

    services: Services
    ports: Ports = _ALL_PORTS
    dns: Address = _NOWHERE
    """Where the cluster's names are really resolved."""
    api: Address | None = None
    """Where the API server is, whatever the endpoints of its Service say: they cannot tell of a
    server that listens on loopback."""


@dataclass(frozen=True, slots=True)
class Route:
    """The places to try in turn; with none, the call is refused."""

    places: tuple[Address, ...] = ()
    from_pod: bool = False
    """Whether the other side should see the pod's address."""


@dataclass(slots=True)
class PodRoutes:
    """Decides where the calls of one pod go."""

    cluster: Cluster
    ip: str
    """The pod's address in the API, `10.244.7.2`."""
    host_network: bool = False
    resolvers: frozenset[str] = frozenset({DNS_ADDRESS})
    """Name servers that the cluster's DNS stands in for."""
    datagram_ports: set[int] = field(default_factory=set)
    """UDP ports on which the pod listens."""

    @property
    def machine_ip(self) -> str:
        return on_machine(self.ip)

    def binding(self, wanted: Address) -> Address | None:
        """The address to bind a socket to that asks for `wanted`; None leaves the call as it is.

        A socket that binds to all addresses and lets the system choose the port is left as it is:
        its port is free, and it can still reach every address.
        """
        ours = wanted.wildcard or wanted.loopback or wanted.ip == self.ip
        if self.host_network or not ours or (wanted.wildcard and not wanted.port):
            return None
        return Address(self.machine_ip, self.cluster.ports.on_machine(wanted.port))

    def concerns(self, wanted: Address) -> bool:
        """Whether a call to there may be one of ours: most go to the world and are not."""
        return (
            wanted.loopback
            or wanted.wildcard
            or is_pod(wanted.ip)
            or is_on_machine(wanted.ip)
            or wanted.ip in self.resolvers
            or self.cluster.services.at(wanted.ip) is not None
        )

    def route(self, wanted: Address, protocol: str) -> Route | None:
        """The places that a call is sent to; None leaves the call as the container made it."""
        cluster = self.cluster
        if wanted.port == DNS_PORT and wanted.ip in self.resolvers:
            return Route((cluster.dns,), from_pod=True)
        if wanted.loopback or wanted.wildcard:
            return self._to_itself(wanted, protocol)
        if is_pod(wanted.ip) or is_on_machine(wanted.ip):
            return Route((self._at(wanted),), from_pod=True)
        service = cluster.services.at(wanted.ip)
        if service is None:
            return None
        chosen = cluster.services.choose(wanted, protocol, self.ip)
        name = (service.metadata.namespace, service.metadata.name)
        if name == KUBERNETES:
            chosen = cluster.api or chosen
        return Route((self._at(chosen),) if chosen is not None else (), from_pod=True)

    def _to_itself(self, wanted: Address, protocol: str) -> Route | None:
        """To the pod's own server on that port, else to the machine's.

        A datagram is never refused, so for UDP the ports on which the pod receives are kept.
        """
        if self.host_network:
            return None
        port = self.cluster.ports.on_machine(wanted.port)
        own = Address(self.machine_ip, port)
        if protocol == TCP:
            # A socket that was tried on an IPv4 address cannot turn to an IPv6 one.
            machine = Address(_MACHINE, wanted.port) if ":" in wanted.ip else wanted
            return Route((own, machine))
        return Route((own,)) if port in self.datagram_ports else None

    def _at(self, address: Address) -> Address:
        if is_pod(address.ip) or is_on_machine(address.ip):
            port = self.cluster.ports.on_machine(address.port)
            return Address(on_machine(address.ip), port)
        return address
