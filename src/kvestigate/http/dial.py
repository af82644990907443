"""Reaching a server: sockets, proxies and TLS, and why that failed.

Proxies follow what Go programs do: an `http://` or `https://` proxy is asked to CONNECT to a
TLS origin, and gets absolute-form requests for a plain one; `socks5://` tunnels both.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from kvestigate import errors
from kvestigate.http import sockets, socks

_PROXY_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_PROXY_HEAD_LIMIT = 64 * 1024

# Verification codes of OpenSSL that users meet, and what gets them out.
_TLS_HINTS = {
    10: "the certificate has expired: renew it, or check this machine's clock",
    9: "the certificate is not valid yet: check this machine's clock",
    18: "the certificate is self-signed: trust it by giving it as the CA",
    19: "the CA that signed it is not trusted: give that CA's certificate",
    20: "the CA that signed it is not trusted: give that CA's certificate",
    62: "the certificate is for other names: set the TLS server name it is for",
    64: "the certificate is for other addresses: set the TLS server name it is for",
}


class Origin(Struct, frozen=True):
    """The server that requests are for, and the way to it."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_hostname: str | None = None
    """The name the certificate must be for; `host` if None."""
    proxy: str | None = None
    """`http://user:password@proxy:3128`, `https://...` or `socks5://...`"""
    opener: Callable[[], Awaitable[socket.socket]] | None = None
    """Gives a connected socket, where no address leads to the server."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def absolute_form(self) -> bool:
        """Whether requests name the whole URL, because a plain HTTP proxy passes them on."""
        return self.tls is None and self.proxy is not None and not self.proxy.startswith("socks5")


ProtocolT = TypeVar("ProtocolT", bound=asyncio.Protocol)


async def dial(
    origin: Origin, factory: Callable[[], ProtocolT], *, timeout: float | None
) -> ProtocolT:
    """A connected protocol, TLS and proxy done; `factory` makes it."""
    try:
        async with asyncio.timeout(timeout):
            if origin.proxy is None:
                return await _direct(origin, factory)
            return await _through_proxy(origin, origin.proxy, factory)
    except TimeoutError:
        raise errors.DeadlineExceeded(
            f"no connection to {origin.authority} within {timeout:g} s",
            hint="check the address, the network and any proxy in between",
        ) from None
    except OSError as failure:
        raise explain(failure, origin.authority) from failure


async def _direct(origin: Origin, factory: Callable[[], ProtocolT]) -> ProtocolT:
    loop = asyncio.get_running_loop()
    name = _server_hostname(origin)
    if origin.opener is not None:
        opened = await origin.opener()
        _, protocol = await loop.create_connection(
            factory, sock=opened, ssl=origin.tls, server_hostname=name
        )
        return protocol
    transport, protocol = await loop.create_connection(
        factory, origin.host, origin.port, ssl=origin.tls, server_hostname=name
    )
    _tune(transport)
    return protocol


async def _through_proxy(origin: Origin, proxy: str, factory: Callable[[], ProtocolT]) -> ProtocolT:
    loop = asyncio.get_running_loop()
    parts = parse_proxy(proxy)
    reader = asyncio.StreamReader(limit=_PROXY_HEAD_LIMIT)
    host, port = parts.hostname or "", parts.port or _PROXY_PORTS[parts.scheme]
    proxy_tls = (origin.tls or ssl.create_default_context()) if parts.scheme == "https" else None
    try:
        transport, _ = await loop.create_connection(
            lambda: asyncio.StreamReaderProtocol(reader), host, port, ssl=proxy_tls
        )
    except OSError as failure:
        raise explain(failure, f"{host}:{port}", role="proxy ") from failure
    try:
        _tune(transport)
        if parts.scheme.startswith("socks5"):
            credentials = _credentials(parts)
            await socks.negotiate(reader, transport, origin.host, origin.port, credentials)
        elif origin.tls is not None:
            await _connect_tunnel(reader, transport, origin.authority, parts)
        return await _hand_over(origin, transport, factory())
    except BaseException:
        transport.abort()
        raise


async def _hand_over(
    origin: Origin, transport: asyncio.Transport, protocol: ProtocolT
) -> ProtocolT:
    """Give the tunnel to `protocol`, inside TLS if the origin speaks it."""
    if origin.tls is None:
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        return protocol
    inner = await asyncio.get_running_loop().start_tls(
        transport, protocol, origin.tls, server_hostname=_server_hostname(origin)
    )
    if inner is None:
        raise ConnectionResetError("the proxy closed the tunnel")
    protocol.connection_made(inner)
    return protocol


async def _connect_tunnel(
    reader: asyncio.StreamReader,
    transport: asyncio.Transport,
    authority: str,
    proxy: SplitResult,
) -> None:
    head = f"CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n"
    authorization = proxy_authorization(proxy)
    if authorization:
        head += f"proxy-authorization: {authorization}\r\n"
    transport.write(f"{head}\r\n".encode("ascii"))
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise errors.ConnectionFailed(
            f"the proxy {proxy.hostname} gave no answer to CONNECT {authority}",
            hint="is it an HTTP proxy?",
        ) from None
    status = answer.split(b"\r\n", 1)[0].decode("latin-1")
    if status.split(" ")[1:2] != ["200"]:
        raise errors.ConnectionFailed(
            f"the proxy {proxy.hostname} refused to connect to {authority}: {status}",
            hint="check the credentials in the proxy's URL and what the proxy allows",
        )


def parse_proxy(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PROXY_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        shown = url.rpartition("@")[2]  # never the credentials
        raise errors.InputError(
            f"proxy {shown!r} is not a proxy URL",
            hint="write http://host:port, https://host:port or socks5://host:port",
        )
    return parts


def _credentials(proxy: SplitResult) -> tuple[str, str] | None:
    if proxy.username is None:
        return None
    return unquote(proxy.username), unquote(proxy.password or "")


def proxy_authorization(proxy: SplitResult) -> str:
    """The value of `Proxy-Authorization`, empty without credentials in the URL."""
    credentials = _credentials(proxy)
    if credentials is None:
        return ""
    return "Basic " + base64.b64encode(":".join(credentials).encode()).decode("ascii")


def _server_hostname(origin: Origin) -> str | None:
    return None if origin.tls is None else origin.server_hostname or origin.host


def _tune(transport: asyncio.BaseTransport) -> None:
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sockets.tune(sock)


def explain(failure: OSError, authority: str, *, role: str = "") -> errors.ConnectionFailed:
    """The sentence and the way out for a failure of the operating system or of TLS."""
    where = f"{role}{authority}"
    if isinstance(failure, ssl.SSLCertVerificationError):
        return errors.ConnectionFailed(
            f"the certificate of {where} is not accepted: {failure.verify_message}",
            hint=_TLS_HINTS.get(failure.verify_code, "check the CA and the name in the URL"),
        )
    if isinstance(failure, ssl.SSLError):
        return _explain_tls(failure, where)
    if isinstance(failure, socket.gaierror):
        return errors.ConnectionFailed(
            f"the name of {where} cannot be resolved: {failure.strerror}",
            hint="check the spelling, DNS and VPN",
        )
    if isinstance(failure, ConnectionRefusedError):
        return errors.ConnectionFailed(
            f"{where} refused the connection", hint="is the server running, and on this port?"
        )
    if isinstance(failure, ConnectionResetError | BrokenPipeError):
        return errors.ConnectionFailed(f"{where} closed the connection: {failure or 'reset'}")
    return errors.ConnectionFailed(f"no connection to {where}: {failure.strerror or failure}")


def _explain_tls(failure: ssl.SSLError, where: str) -> errors.ConnectionFailed:
    reason = (failure.reason or str(failure)).replace("_", " ").lower()
    if "wrong version number" in reason or "record layer failure" in reason:
        return errors.ConnectionFailed(
            f"{where} does not speak TLS", hint="use http:// or check the port"
        )
    if "alert" in reason and ("certificate" in reason or "unknown ca" in reason):
        return errors.ConnectionFailed(
            f"{where} does not accept our client certificate: {reason}",
            hint="check that the certificate is current and signed by the server's client CA",
        )
    return errors.ConnectionFailed(f"the TLS handshake with {where} failed: {reason}")
