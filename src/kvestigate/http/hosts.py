"""Which Host headers name this server. Pure.

A browser sends the name that a page used. A page of `evil.example.com` whose DNS entry becomes
127.0.0.1 (DNS rebinding) reaches the server under that foreign name, and is refused by it.
"""

from __future__ import annotations

import re
from collections.abc import Container
from ipaddress import IPv4Address, IPv6Address, ip_address

_HEADER = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_HTTP_PORT = 80
_HIGHEST_PORT = 65535


def canonical(host: str) -> str | None:
    """A host name or an IP address in the one form that is compared; None if `host` is neither."""
    if (address := _address(host)) is not None:
        return str(address)
    return host.lower().removesuffix(".") if _NAME.fullmatch(host) else None


def is_loopback(host: str) -> bool:
    """Whether nobody on another machine can reach a server that listens on `host`."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def is_own(header: str, address: str, port: int | None, listed: Container[str]) -> bool:
    """Whether a request to `address` and `port` may have this Host header.

    `listed` are canonical hosts of the operator; their ports may be those of a proxy.
    """
    parts = _HEADER.fullmatch(header)
    host = canonical(parts["v6"] or parts["host"]) if parts is not None else None
    if parts is None or host is None:
        return False
    header_port = int(parts["port"] or _HTTP_PORT)
    if host in listed:
        return header_port <= _HIGHEST_PORT
    return header_port == port and (_is_this_machine(host) or host == canonical(address))


def _is_this_machine(host: str) -> bool:
    """Whether every machine means itself by `host`: `localhost`, 127.0.0.1, ::1, 0.0.0.0."""
    address = _address(host)
    if address is None:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
