"""The client's half of SOCKS5 (RFC 1928, RFC 1929): no authentication, or user and password."""

from __future__ import annotations

import asyncio
import ipaddress

from kvestigate import errors

_VERSION = 5
_NO_AUTHENTICATION, _USER_PASSWORD = 0, 2
_CONNECT = 1
_ADDRESS_LENGTHS = {1: 4, 4: 16}
_NAME = 3

_REPLIES = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "expired on the way",
    7: "command not supported",
    8: "kind of address not supported",
}


async def negotiate(
    reader: asyncio.StreamReader,
    transport: asyncio.Transport,
    host: str,
    port: int,
    credentials: tuple[str, str] | None,
) -> None:
    """Turn a fresh connection to the proxy into one to `host:port`; the proxy resolves names."""
    try:
        await _authenticate(reader, transport, credentials)
        transport.write(bytes((_VERSION, _CONNECT, 0)) + _address(host) + port.to_bytes(2, "big"))
        version, reply, _, kind = await reader.readexactly(4)
        if version != _VERSION:
            raise errors.ConnectionFailed("the SOCKS proxy answered in another protocol")
        if reply:
            reason = _REPLIES.get(reply, f"code {reply}")
            raise errors.ConnectionFailed(
                f"the SOCKS proxy did not connect to {host}:{port}: {reason}"
            )
        length = (await reader.readexactly(1))[0] if kind == _NAME else _ADDRESS_LENGTHS[kind]
        await reader.readexactly(length + 2)
    except (asyncio.IncompleteReadError, KeyError):
        raise errors.ConnectionFailed(
            "the SOCKS proxy broke off its handshake", hint="is it a SOCKS5 proxy?"
        ) from None


async def _authenticate(
    reader: asyncio.StreamReader,
    transport: asyncio.Transport,
    credentials: tuple[str, str] | None,
) -> None:
    methods = [_NO_AUTHENTICATION] if credentials is None else [_NO_AUTHENTICATION, _USER_PASSWORD]
    transport.write(bytes((_VERSION, len(methods), *methods)))
    version, method = await reader.readexactly(2)
    if version != _VERSION or method not in methods:
        raise errors.ConnectionFailed(
            "the SOCKS proxy wants another way of authentication",
            hint="give user and password: socks5://user:password@host:port",
        )
    if method == _USER_PASSWORD and credentials is not None:
        user, password = (part.encode() for part in credentials)
        transport.write(b"\x01" + bytes((len(user),)) + user + bytes((len(password),)) + password)
        _, refused = await reader.readexactly(2)
        if refused:
            raise errors.ConnectionFailed("the SOCKS proxy refused the user and password")


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")
        return bytes((_NAME, len(name))) + name
    return bytes((1 if address.version == 4 else 4,)) + address.packed
