"""The one way in which the server connects to an address that a tenant named.

A Node's address, an EndpointSlice, a webhook's URL: all of them are a tenant's word, and the server
stands where the tenant does not. So a host is resolved once, each address is judged
(`addresses`), and the connection is made to exactly the address that was judged: nothing resolves
the name a second time, and TLS verifies the name, not the address.

Never reached, whatever the address of the machine: a port on which this server listens, and its
etcd. An allowance of the operator counts there only if it names the port.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence

from kvestigate.cluster.plane.egress.addresses import Allowance, IPAddress, is_allowed, plain
from kvestigate.errors import BadRequest
from kvestigate.http import sockets

_DISCARD = 9
"""A port for sockets that only ask the kernel for a route."""


class AddressRefused(BadRequest):
    """A tenant named an address that the server does not connect to."""


class Dialer:
    def __init__(
        self, allowed: Sequence[Allowance] = (), etcd: Sequence[tuple[str, int]] = ()
    ) -> None:
        """`etcd`: host and port of every member of the store."""
        self._allowed = tuple(allowed)
        self._etcd = tuple(etcd)
        self._own_ports: set[int] = set()

    def protect(self, port: int) -> None:
        """Never connect to this port of the machine: the server itself listens there."""
        self._own_ports.add(port)

    async def open(self, host: str, port: int) -> socket.socket:
        """A connected socket; AddressRefused or OSError."""
        addresses = await _resolve(host)
        for address in addresses:
            if not is_allowed(address, port, self._allowed) or await self._is_ours(address, port):
                raise AddressRefused("address not allowed")
        failures: list[OSError] = []
        for address in addresses:
            try:
                return await _connected(address, port)
            except OSError as failure:
                failures.append(failure)
        raise failures[0]

    async def _is_ours(self, address: IPAddress, port: int) -> bool:
        """Whether the server itself or its etcd listens there."""
        if any(each.port is not None and each.covers(address, port) for each in self._allowed):
            return False
        if port in self._own_ports and is_of_this_machine(address):
            return True
        members = [host for host, member_port in self._etcd if member_port == port]
        return any([address in await _resolve(member) for member in members])


def is_of_this_machine(address: IPAddress) -> bool:
    """Whether packets to the address stay here: the kernel then sends from that very address."""
    with socket.socket(_family(address), socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), _DISCARD))
        except OSError:
            return False
        return ipaddress.ip_address(probe.getsockname()[0]) == address


async def _connected(address: IPAddress, port: int) -> socket.socket:
    opened = socket.socket(_family(address), socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        sockets.tune(opened)
        await asyncio.get_running_loop().sock_connect(opened, (str(address), port))
    except BaseException:
        opened.close()
        raise
    return opened


async def _resolve(host: str) -> list[IPAddress]:
    """The addresses of a host as the kernel connects to them, at least one."""
    try:
        return [plain(ipaddress.ip_address(host))]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    try:
        resolved = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except ValueError:  # empty, or no text that could be a name
        raise AddressRefused("address not allowed") from None
    return [plain(ipaddress.ip_address(sockaddr[0])) for *_, sockaddr in resolved]


def _family(address: IPAddress) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6
