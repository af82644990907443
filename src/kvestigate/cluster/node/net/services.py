"""What Services lead to: the Services and EndpointSlices of the cluster, looked up by address."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from kvestigate.client.cache import Change, Key, key_of
from kvestigate.cluster.node.net.translation import Address
from kvestigate.kube.views.network import (
    Endpoint,
    EndpointPort,
    EndpointSlice,
    Service,
    ServicePort,
)

OWNER = "kubernetes.io/service-name"
"""The label by which a slice names its Service."""


@dataclass(frozen=True, slots=True)
class Backend:
    """An endpoint behind a port of a Service."""

    endpoint: Endpoint
    port: EndpointPort

    @property
    def address(self) -> Address:
        return Address(self.endpoint.addresses[0], self.port.port)


@dataclass(slots=True)
class Services:
    """Kept current by the changes that it is told."""

    by_key: dict[Key, Service] = field(default_factory=dict)
    _by_ip: dict[str, Key] = field(default_factory=dict)
    _slices: dict[Key, dict[Key, EndpointSlice]] = field(default_factory=dict)
    """By Service, then by the slice's own key."""
    _turns: dict[Address, int] = field(default_factory=dict)

    # Changes.

    def on_service(self, change: Change[Service]) -> None:
        if change.old is not None:
            self.by_key.pop(change.key, None)
            for ip in _addresses(change.old):
                self._by_ip.pop(ip, None)
        if change.new is not None:
            self.by_key[change.key] = change.new
            for ip in _addresses(change.new):
                self._by_ip[ip] = change.key

    def on_slice(self, change: Change[EndpointSlice]) -> None:
        for view, present in ((change.old, False), (change.new, True)):
            owner = view.metadata.labels.get(OWNER) if view is not None else None
            if view is None or not owner:
                continue
            slices = self._slices.setdefault(Key(view.metadata.namespace, owner), {})
            slices.pop(change.key, None)
            if present:
                slices[change.key] = view

    # Questions.

    def at(self, ip: str) -> Service | None:
        key = self._by_ip.get(ip)
        return self.by_key[key] if key is not None else None

    def choose(self, wanted: Address, protocol: str, client: str) -> Address | None:
        """The endpoint that `client` is sent to: each in turn, or always the same for one client
        if the Service says so. None when no endpoint is behind that port."""
        service = self.at(wanted.ip)
        if service is None:
            return None
        port = next(
            (
                candidate
                for candidate in service.spec.ports
                if candidate.port == wanted.port and candidate.protocol == protocol
            ),
            None,
        )
        backends = self.backends(key_of(service), port) if port is not None else []
        if not backends:
            return None
        if service.spec.session_affinity == "ClientIP":
            return max(
                (backend.address for backend in backends),
                key=lambda address: _weight(client, address),
            )
        turn = self._turns.get(wanted, 0)
        self._turns[wanted] = turn + 1
        return backends[turn % len(backends)].address

    def backends(self, key: Key, port: ServicePort) -> list[Backend]:
        """The ready endpoints; if none is ready, those that terminate but still serve."""
        known = [
            Backend(endpoint, behind)
            for slice_, behind in self._ports(key, port)
            for endpoint in slice_.endpoints
            if endpoint.addresses
        ]
        ready = [backend for backend in known if backend.endpoint.conditions.ready is not False]
        return ready or [backend for backend in known if backend.endpoint.conditions.serving]

    def _ports(self, key: Key, port: ServicePort) -> Iterator[tuple[EndpointSlice, EndpointPort]]:
        for slice_ in self.slices(key):
            for behind in slice_.ports:
                if behind.name == port.name and behind.protocol == port.protocol:
                    yield slice_, behind

    def slices(self, key: Key) -> list[EndpointSlice]:
        """The slices of a Service, sorted by name."""
        slices = self._slices.get(key, {})
        return [slices[slice_key] for slice_key in sorted(slices)]

    def ready_endpoints(self, key: Key) -> list[Endpoint]:
        """What the name of a headless Service stands for."""
        return [
            endpoint
            for slice_ in self.slices(key)
            for endpoint in slice_.endpoints
            if endpoint.addresses and endpoint.conditions.ready is not False
        ]


def _addresses(service: Service) -> list[str]:
    own = [ip for ip in (service.spec.cluster_ip, *service.spec.cluster_ips) if ip != "None"]
    balanced = [ingress.ip for ingress in service.status.load_balancer.ingress]
    return [ip for ip in (*own, *service.spec.external_ips, *balanced) if ip]


def _weight(client: str, address: Address) -> bytes:
    """Rendezvous hashing: when an endpoint goes, only its own clients move."""
    return hashlib.blake2b(f"{client} {address.ip} {address.port}".encode()).digest()
