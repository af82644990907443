"""Connections to kubelets, pods and webhooks, kept open for the next request.

Every plane has connections and credentials of its own (`Egress`): what the server shows to the
kubelets of one plane is good for nothing else. Pods, Services and webhooks are shown nothing.
"""

from __future__ import annotations

import socket
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import quote

from kvestigate.cluster.plane.egress.dialer import Dialer
from kvestigate.cluster.plane.egress.locate import Address, Known, Kubelet, Outside, PodPort
from kvestigate.cluster.plane.egress.tunnel import Tunnel
from kvestigate.http.pool import HttpClient
from kvestigate.http.tls import client_context

Target = Kubelet | Address | PodPort | Outside | Known
Place = tuple[str, int]

MAX_CLIENTS = 256
"""Targets with open connections; the one that was not used for longest is closed first."""


Opener = Callable[[], Awaitable[socket.socket]]
StandIn = Callable[[str, str], Opener | None]
"""(plane, node) -> what opens a connection to its kubelet, or None if the node is not simulated."""


def no_stand_in(plane: str, node: str) -> Opener | None:
    return None


def no_credentials(plane: str) -> ssl.SSLContext:
    return ssl.create_default_context()


class Backends:
    """The HTTP clients of the server, by plane and target."""

    def __init__(
        self,
        credentials: Callable[[str], ssl.SSLContext] = no_credentials,
        dialer: Dialer | None = None,
    ) -> None:
        """`credentials`: what a plane's kubelets are shown, and the CA of their certificates."""
        self._credentials = credentials
        self._dialer = dialer or Dialer()
        self._nodes: dict[tuple[str, str], Place] = {}
        self.stand_in: StandIn = no_stand_in
        """Answers for the kubelets of simulated nodes, which do not listen anywhere."""
        self._clients: OrderedDict[tuple[str, Target, Place | None], _Client] = OrderedDict()

    def of(self, plane: str) -> Egress:
        return Egress(self, plane)

    def register(self, plane: str, node: str, place: Place) -> None:
        """The kubelet of a node that runs in this process, whatever its Node object says.

        It is known by its place here and by its serving certificate, so the address may be one
        that tenants cannot name.
        """
        self._nodes[plane, node] = place

    async def client(self, plane: str, target: Target) -> HttpClient:
        place = self._nodes.get((plane, target.node)) if isinstance(target, Kubelet) else None
        if isinstance(target, Kubelet) and place is None:
            opener = self.stand_in(plane, target.node)
            if opener is not None:
                return HttpClient(host=target.node, port=target.port, opener=opener, max_idle=0)
        key = plane, target, place
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = await self._new(plane, target, place)
            if len(self._clients) > MAX_CLIENTS:
                _, oldest = self._clients.popitem(last=False)
                await oldest.aclose()
        self._clients.move_to_end(key)
        return client.http

    async def aclose(self) -> None:
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    async def _new(self, plane: str, target: Target, place: Place | None) -> _Client:
        if isinstance(target, Kubelet):
            if place is not None:
                host, port = place
                return _Client(HttpClient(host=host, port=port, tls=self._credentials(plane)))
            return self._dialled(target.host, target.port, self._credentials(plane))
        if isinstance(target, Outside):
            return self._dialled(target.host, target.port, client_context(ca=target.ca))
        if isinstance(target, Known):
            trust = client_context(ca=target.ca)
            return await self._connect(plane, target.at, trust, target.name)
        # Pods have certificates of their own choice.
        tls = client_context(insecure=True) if target.tls else None
        return await self._connect(plane, target, tls)

    async def _connect(
        self,
        plane: str,
        at: Address | PodPort,
        tls: ssl.SSLContext | None,
        name: str | None = None,
    ) -> _Client:
        """`name`: the host name in the server's certificate, if it is not the address."""
        if isinstance(at, Address):
            return self._dialled(at.host, at.port, tls, name)
        path = f"/portForward/{quote(at.namespace)}/{quote(at.pod)}"
        tunnel = Tunnel(await self.client(plane, at.kubelet), path, at.port)
        http = HttpClient(
            host=at.host, port=at.port, tls=tls, server_hostname=name, opener=tunnel.open
        )
        return _Client(http, tunnel)

    def _dialled(
        self, host: str, port: int, tls: ssl.SSLContext | None, name: str | None = None
    ) -> _Client:
        opener = partial(self._dialer.open, host, port)
        return _Client(
            HttpClient(host=host, port=port, tls=tls, server_hostname=name, opener=opener)
        )


class Egress:
    """The backends of one plane."""

    def __init__(self, backends: Backends, plane: str) -> None:
        self._backends = backends
        self._plane = plane

    async def client(self, target: Target) -> HttpClient:
        return await self._backends.client(self._plane, target)


class _Client:
    def __init__(self, http: HttpClient, tunnel: Tunnel | None = None) -> None:
        self.http = http
        self._tunnel = tunnel

    async def aclose(self) -> None:
        await self.http.aclose()
        if self._tunnel is not None:
            await self._tunnel.aclose()
