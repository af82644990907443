"""IP addresses and networks."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import ClassVar

import msgspec

from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.signatures import Library

_IP, _CIDR = "net.IP", "net.CIDR"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Ip(msgspec.Struct, frozen=True):
    TYPE: ClassVar[str] = _IP
    address: Address


class Cidr(msgspec.Struct, frozen=True):
    TYPE: ClassVar[str] = _CIDR
    address: Address
    length: int

    @property
    def network(self) -> Network:
        return ipaddress.ip_network((self.address, self.length), strict=False)


def _ip(text: str) -> Ip:
    try:
        return Ip(_address(text))
    except ValueError:
        raise EvalError(
            f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): '
            "unable to parse IP"
        ) from None


def _address(text: str) -> Address:
    address = ipaddress.ip_address(text)
    if "%" in text or (address.version == 6 and address.ipv4_mapped is not None):
        raise ValueError(text)
    return address


def _cidr(text: str) -> Cidr:
    try:
        host, slash, length = text.partition("/")
        address = _address(host)
        if not slash or not length.isdecimal() or str(int(length)) != length:
            raise ValueError(text)
        if int(length) > address.max_prefixlen:
            raise ValueError(text)
    except ValueError:
        raise EvalError(
            f'network address parse error during conversion from string: netip.ParsePrefix("{text}"'
            "): invalid prefix"
        ) from None
    return Cidr(address, int(length))


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except EvalError:
            return False
        return True

    return check


def _is_global(ip: Ip) -> bool:
    address = ip.address
    special = address.is_loopback or address.is_multicast or address.is_link_local
    broadcast = str(address) == "255.255.255.255"
    return not (special or address.is_unspecified or broadcast)


def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    return ip.address in cidr.network


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    same = cidr.address.version == other.address.version
    return same and other.length >= cidr.length and other.address in cidr.network


def _is_local_multicast(ip: Ip) -> bool:
    wide: Network = (
        ipaddress.ip_network("224.0.0.0/24")
        if ip.address.version == 4
        else ipaddress.ip_network("ff02::/16")
    )
    return ip.address in wide


FUNCTIONS: Library = {
    f"ip(string) -> {_IP}": _ip,
    "isIP(string) -> bool": _parses(_ip),
    "ip.isCanonical(string) -> bool": lambda text: str(_ip(text).address) == text,
    f"string({_IP}) -> string": lambda ip: str(ip.address),
    f"{_IP}::family() -> int": lambda ip: ip.address.version,
    f"{_IP}::isUnspecified() -> bool": lambda ip: ip.address.is_unspecified,
    f"{_IP}::isLoopback() -> bool": lambda ip: ip.address.is_loopback,
    f"{_IP}::isLinkLocalMulticast() -> bool": _is_local_multicast,
    f"{_IP}::isLinkLocalUnicast() -> bool": lambda ip: ip.address.is_link_local,
    f"{_IP}::isGlobalUnicast() -> bool": _is_global,
    f"cidr(string) -> {_CIDR}": _cidr,
    "isCIDR(string) -> bool": _parses(_cidr),
    f"string({_CIDR}) -> string": lambda cidr: f"{cidr.address}/{cidr.length}",
    f"{_CIDR}::containsIP({_IP}) -> bool": _contains_ip,
    f"{_CIDR}::containsIP(string) -> bool": lambda cidr, text: _contains_ip(cidr, _ip(text)),
    f"{_CIDR}::containsCIDR({_CIDR}) -> bool": _contains_cidr,
    f"{_CIDR}::containsCIDR(string) -> bool": lambda cidr, text: _contains_cidr(cidr, _cidr(text)),
    f"{_CIDR}::ip() -> {_IP}": lambda cidr: Ip(cidr.address),
    f"{_CIDR}::masked() -> {_CIDR}": (lambda cidr: Cidr(cidr.network.network_address, cidr.length)),
    f"{_CIDR}::prefixLength() -> int": lambda cidr: cidr.length,
}
