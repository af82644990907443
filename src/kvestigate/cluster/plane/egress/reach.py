"""Connections to kubelets, pods and webhooks, kept open for the next request."""

from __future__ import annotations

import ssl
from collections import OrderedDict
from urllib.parse import quote

from kvestigate.cluster.plane.egress.locate import Address, Known, Outside, PodPort
from kvestigate.cluster.plane.egress.tunnel import Tunnel
from kvestigate.http.pool import HttpClient
from kvestigate.http.tls import client_context

Target = Address | PodPort | Outside | Known

MAX_CLIENTS = 256
"""Targets with open connections; the one that was not used for longest is closed first."""


class Backends:
    """The HTTP clients of the server. `tls`: its certificate for kubelets, and their CA."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, loopback: bool = False) -> None:
        self._tls = tls
        self.loopback = loopback
        """Whether endpoints may have loopback addresses, as on a developer's machine."""
        self._clients: OrderedDict[Target, _Client] = OrderedDict()

    async def client(self, target: Target) -> HttpClient:
        client = self._clients.get(target)
        if client is None:
            client = self._clients[target] = await self._new(target)
            if len(self._clients) > MAX_CLIENTS:
                _, oldest = self._clients.popitem(last=False)
                await oldest.aclose()
        self._clients.move_to_end(target)
        return client.http

    async def aclose(self) -> None:
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    async def _new(self, target: Target) -> _Client:
        if isinstance(target, Outside):
            trust = client_context(ca=target.ca)
            return _Client(HttpClient(host=target.host, port=target.port, tls=trust))
        if isinstance(target, Known):
            trust = client_context(ca=target.ca)
            return await self._connect(target.at, trust, target.name)
        return await self._connect(target, self._context(target))

    async def _connect(
        self, at: Address | PodPort, tls: ssl.SSLContext | None, name: str | None = None
    ) -> _Client:
        """`name`: the host name in the server's certificate, if it is not the address."""
        if isinstance(at, Address):
            return _Client(HttpClient(host=at.host, port=at.port, tls=tls, server_hostname=name))
        path = f"/portForward/{quote(at.namespace)}/{quote(at.pod)}"
        tunnel = Tunnel(await self.client(at.kubelet), path, at.port)
        http = HttpClient(
            host=at.host, port=at.port, tls=tls, server_hostname=name, opener=tunnel.open
        )
        return _Client(http, tunnel)

    def _context(self, target: Address | PodPort) -> ssl.SSLContext | None:
        if not target.tls:
            return None
        if isinstance(target, Address) and target.kubelet:
            if self._tls is None:
                self._tls = ssl.create_default_context()
            return self._tls
        # Pods have certificates of their own choice, and do not get the server's.
        return client_context(insecure=True)


class _Client:
    def __init__(self, http: HttpClient, tunnel: Tunnel | None = None) -> None:
        self.http = http
        self._tunnel = tunnel

    async def aclose(self) -> None:
        await self.http.aclose()
        if self._tunnel is not None:
            await self._tunnel.aclose()
