"""Which addresses pods have, and where on this machine those are. Pure.

The API knows a pod as 10.A.B.C, of 10.244.0.0/14, because it refuses loopback addresses as
endpoints; on the machine the same pod is at 127.A.B.C.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton

PODS = (0x0AF40000, 14)
MACHINE = (0x7FF40000, 14)
_LOOPBACK = (0x7F000000, 8)
_MAPPED = b"\0" * 10 + b"\xff\xff"

DNS_ADDRESS = "169.254.20.10"
"""What pods know as their name server: link-local, so that it can be no Service's."""
DNS_PORT = 53

RAISED = 64512
"""What is added to ports below 1024 where this user may not have them; such high ports are
outside of what the system hands out by itself."""
_PRIVILEGED = 1024


@dataclass(frozen=True, slots=True)
class Address:
    """What a call names: an IPv4 address, or an IPv6 one that is not such an address mapped."""

    ip: str
    port: int

    @property
    def wildcard(self) -> bool:
        return self.ip in ("0.0.0.0", "::")

    @property
    def loopback(self) -> bool:
        """Whether it is a loopback address that belongs to no pod."""
        return self.ip == "::1" or (_within(self.ip, _LOOPBACK) and not _within(self.ip, MACHINE))


def read_address(content: bytes) -> Address | None:
    """A `sockaddr` of the internet; None for any other."""
    if len(content) < 8:
        return None
    (family,) = struct.unpack_from("=H", content)
    (port,) = struct.unpack_from("!H", content, 2)
    if family == AF_INET:
        return Address(inet_ntop(AF_INET, content[4:8]), port)
    if family == AF_INET6 and len(content) >= 24:
        ip = content[8:24]
        if ip.startswith(_MAPPED):
            return Address(inet_ntop(AF_INET, ip[12:]), port)
        return Address(inet_ntop(AF_INET6, ip), port)
    return None


def is_pod(ip: str) -> bool:
    return _within(ip, PODS)


def is_on_machine(ip: str) -> bool:
    """Whether it is a pod's address as the machine knows it."""
    return _within(ip, MACHINE)


def on_machine(ip: str) -> str:
    """The machine's address for a pod's address; any other address is returned unchanged."""
    return f"127{ip[2:]}" if is_pod(ip) else ip


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports as this machine lets us have them."""

    first_free: int = 0
    """The lowest port that this user may listen on."""

    def on_machine(self, port: int) -> int:
        low = 0 < port < min(self.first_free, _PRIVILEGED)
        return port + RAISED if low else port


def _within(ip: str, network: tuple[int, int]) -> bool:
    try:
        (number,) = struct.unpack("!I", inet_pton(AF_INET, ip))
    except OSError:
        return False
    base, bits = network
    return bool(number >> (32 - bits) == base >> (32 - bits))
