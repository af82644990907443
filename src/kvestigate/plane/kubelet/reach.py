"""Connections to kubelets and pods, kept open for the next request."""

from __future__ import annotations

import ssl
from collections import OrderedDict

from kvestigate.plane.kubelet.locate import Address
from kvestigate.wire.pool import HttpClient

MAX_CLIENTS = 256
"""Addresses to which connections are kept; the one unused for longest makes room."""


class Backends:
    """Every address behind the server. `tls` is what it shows to kubelets and trusts them by."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, loopback: bool = False) -> None:
        self._tls = tls
        self.loopback = loopback
        """Whether pods may be reached at loopback addresses: on one's own machine they are."""
        self._clients: OrderedDict[Address, HttpClient] = OrderedDict()

    async def client(self, address: Address) -> HttpClient:
        client = self._clients.get(address)
        if client is None:
            client = HttpClient(
                host=address.host, port=address.port, tls=self._context() if address.tls else None
            )
            self._clients[address] = client
            if len(self._clients) > MAX_CLIENTS:
                _, oldest = self._clients.popitem(last=False)
                await oldest.aclose()
        self._clients.move_to_end(address)
        return client

    async def aclose(self) -> None:
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls
