"""Which addresses the server may connect to because a tenant named them. Pure.

An IPv6 address can carry an IPv4 address, and whoever routes it may deliver to that one. So every
address is judged together with all IPv4 addresses that its notation carries (`carried`).
Notations of the text (`0x7f.1`, `2130706433`) are not a matter of this module: it judges what the
resolver made of them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from kvestigate.errors import UsageError

IPAddress = IPv4Address | IPv6Address

_LOW_32 = tuple(
    map(
        IPv6Network,
        (
            "::/96",  # IPv4-compatible
            "::ffff:0:0/96",  # IPv4-mapped
            "::ffff:0:0:0/96",  # IPv4-translated (SIIT)
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",  # NAT64, local use
        ),
    )
)
"""IPv6 networks whose addresses have an IPv4 address in their last 32 bits."""
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_32_BITS = 0xFFFF_FFFF

_CLOUD_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    )
)
"""Services that give out a machine's credentials, at addresses that are not link-local."""
_THIS_NETWORK = IPv4Network("0.0.0.0/8")


@dataclass(frozen=True, slots=True)
class Allowance:
    """Addresses that the operator allows, at one port or at all of them."""

    network: IPv4Network | IPv6Network
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Allowance:
        """`10.0.0.0/8`, `127.0.0.1:8443`, `fd00::/8` or `[::1]:8443`."""
        network, port = text, ""
        if text.startswith("["):
            network, _, port = text[1:].partition("]")
            valid = not port or port.startswith(":")
            port = port.removeprefix(":")
        else:
            valid = True
            if text.count(":") == 1:
                network, _, port = text.partition(":")
                valid = bool(port)
        try:
            number = int(port) if port.isdecimal() else None
            if not valid or (port and (number is None or not 0 < number < 65536)):
                raise ValueError
            return cls(ipaddress.ip_network(network), number)
        except ValueError:
            raise UsageError(
                f"--allow-egress: {text!r} is not CIDR[:PORT]",
                hint="write 127.0.0.1/32:8443, 10.0.0.0/8 or [::1]:8443",
            ) from None

    def covers(self, address: IPAddress, port: int) -> bool:
        return address in self.network and self.port in (None, port)


def carried(address: IPAddress) -> Iterator[IPAddress]:
    """The address itself, and the IPv4 addresses that it carries."""
    yield address
    if isinstance(address, IPv4Address):
        return
    bits = int(address)
    low = IPv4Address(bits & _32_BITS)
    if any(address in network for network in _LOW_32) or (bits >> 32) & _32_BITS in _ISATAP:
        yield low
    if address in _SIX_TO_FOUR:
        yield IPv4Address((bits >> 80) & _32_BITS)
    if address in _TEREDO:
        yield IPv4Address((bits >> 64) & _32_BITS)
        yield IPv4Address(~bits & _32_BITS)
    if address in _NAT64_LOCAL:  # RFC 6052: 16 bits on either side of the octet `u`
        yield IPv4Address((bits >> 48) & 0xFFFF_0000 | (bits >> 40) & 0xFFFF)


def plain(address: IPAddress) -> IPAddress:
    """The address that the kernel connects to: an IPv4-mapped one is the IPv4 address."""
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or IPv6Address(int(address))  # without a zone
    return address


def is_allowed(address: IPAddress, port: int, allowed: Iterable[Allowance]) -> bool:
    """Whether a tenant may have the server connect there. Own listeners are not judged here."""
    return all(
        _is_ordinary(view) or any(each.covers(view, port) for each in allowed)
        for view in carried(plain(address))
    )


def _is_ordinary(address: IPAddress) -> bool:
    """Whether the address is neither this machine's, nor of its link, nor of its cloud."""
    special = (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address in _CLOUD_METADATA
    )
    if isinstance(address, IPv4Address):
        return not (special or address.is_reserved or address in _THIS_NETWORK)
    return not special
