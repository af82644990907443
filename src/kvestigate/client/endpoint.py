"""Where an API server is, and through which proxy it is reached. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

_DEFAULT_PORTS = {"http": 80, "https": 443}
PROXY_SCHEMES = ("http", "https", "socks5")


class Endpoint(Struct, frozen=True):
    """A parsed server URL."""

    scheme: str
    host: str
    """A name or an address, IPv6 without brackets."""
    port: int
    base_path: str = ""
    """What precedes `/api`, without a trailing slash: `/clusters/x/control-plane`."""

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """The `Host` header: the port only when it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.base_path}"


def parse_endpoint(server: str) -> Endpoint:
    """The endpoint a server URL names; ValueError says, without quoting it, what is wrong.

    As for kubectl, a bare `host:port` is plain http, and query and fragment are dropped.
    """
    bare = "://" not in server
    try:
        parts = urlsplit(f"http://{server}" if bare else server)
        port = parts.port
    except ValueError as error:
        raise ValueError(_reason(str(error))) from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError(f'the scheme is "{parts.scheme}", it must be https or http')
    if not parts.hostname or any(character.isspace() for character in parts.netloc):
        raise ValueError("it names no host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("it must not carry a user name or password; put them into the user entry")
    if bare and parts.path.strip("/"):
        raise ValueError("it has a path but no scheme; write https://HOST/PATH")
    return Endpoint(
        scheme=parts.scheme,
        host=parts.hostname,
        port=_DEFAULT_PORTS[parts.scheme] if port is None else port,
        base_path=parts.path.rstrip("/"),
    )


def _reason(message: str) -> str:
    # The standard library quotes the offending part, which may hold a password.
    return "the port is not a number from 0 to 65535" if "ort" in message else "it is not a URL"


def check_proxy(proxy_url: str) -> str | None:
    """What is wrong with a `proxy-url`, or None. Never quotes it: it may hold a password."""
    try:
        parts = urlsplit(proxy_url)
        _ = parts.port
    except ValueError as error:
        return _reason(str(error))
    if parts.scheme not in PROXY_SCHEMES:
        return f'the scheme is "{parts.scheme}", it must be http, https or socks5'
    return None if parts.hostname else "it names no host"


def proxy_from_environment(endpoint: Endpoint, environ: Mapping[str, str]) -> str | None:
    """The proxy for `endpoint` by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, read as Go reads them."""
    variable = "HTTPS_PROXY" if endpoint.secure else "HTTP_PROXY"
    proxy = environ.get(variable) or environ.get(variable.lower())
    if not proxy or _is_loopback(endpoint.host):
        return None
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_excepts(entry, endpoint) for entry in exceptions.lower().split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _excepts(entry: str, endpoint: Endpoint) -> bool:
    """Whether one entry of NO_PROXY (`*`, CIDR, address or domain, with a port) covers it."""
    entry = entry.strip()
    if not entry or entry == "*":
        return entry == "*"
    address = _address(endpoint.host)
    if "/" in entry:
        return address is not None and _in_network(address, entry)
    host, port = _host_and_port(entry)
    if not host or (port and port != str(endpoint.port)):
        return False
    if address is not None:
        return _address(host) == address
    return _covers_domain(host, endpoint.host.lower())


def _in_network(address: ipaddress.IPv4Address | ipaddress.IPv6Address, cidr: str) -> bool:
    try:
        return address in ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False


def _host_and_port(entry: str) -> tuple[str, str]:
    if _address(entry) is not None:
        return entry, ""
    host, colon, port = entry.rpartition(":")
    return (host.removeprefix("[").removesuffix("]"), port) if colon else (entry, "")


def _covers_domain(pattern: str, host: str) -> bool:
    """`foo.com` covers itself and below; `.foo.com` and `*.foo.com` only what is below."""
    pattern = pattern.removeprefix("*")
    if pattern.startswith("."):
        return host.endswith(pattern)
    return host == pattern or host.endswith("." + pattern)
