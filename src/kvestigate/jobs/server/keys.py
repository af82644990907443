"""The keys of an OpenID Connect issuer: fetched when needed, kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from kvestigate import __version__
from kvestigate.errors import KvestigateError, ServiceUnavailable
from kvestigate.http.message import Headers, Request
from kvestigate.http.pool import HttpClient
from kvestigate.http.tls import client_context
from kvestigate.jobs.server.jwt import Key, read_keys
from kvestigate.jobs.server.settings import Oidc

_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 10.0
"""Shortest time between two fetches, so that tokens with made-up key IDs cause no flood."""
_TIMEOUT = 10.0
_LARGEST = 1 << 20
_DISCOVERY = "/.well-known/openid-configuration"


class IssuerKeys:
    def __init__(self, oidc: Oidc, now: Callable[[], float]) -> None:
        self._oidc = oidc
        self._now = now
        self._keys: Mapping[str, Key] = {}
        self._fetched = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    async def with_id(self, key_id: str) -> Mapping[str, Key]:
        """All keys, fetched again if `key_id` is not among them."""
        async with self._one_at_a_time:
            age = self._now() - self._fetched
            if age > (_FRESH_SECONDS if key_id in self._keys else _PAUSE_SECONDS):
                self._keys = read_keys(await self._document())
                self._fetched = self._now()
        return self._keys

    async def _document(self) -> bytes:
        url = self._oidc.jwks_url
        try:
            if not url:
                discovery = await _get(self._oidc.issuer.rstrip("/") + _DISCOVERY)
                url = str(msgspec.json.decode(discovery, type=dict[str, Any]).get("jwks_uri", ""))
            return await _get(url)
        except (KvestigateError, msgspec.DecodeError) as error:
            raise ServiceUnavailable(
                f"the keys of {self._oidc.issuer} cannot be fetched: {error}",
                hint="without them no token of that issuer can be checked",
            ) from error


async def _get(url: str) -> bytes:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    client = HttpClient(
        host=parts.hostname or "",
        port=parts.port or (443 if secure else 80),
        tls=client_context() if secure else None,
    )
    fields = [("accept", "application/json"), ("user-agent", f"kvestigate/{__version__}")]
    try:
        request = Request("GET", parts.path or "/", parts.query, Headers(fields), b"")
        async with asyncio.timeout(_TIMEOUT):
            incoming = await client.send(request, timeout=_TIMEOUT)
            answer = await incoming.read(limit=_LARGEST)
    except TimeoutError:
        raise ServiceUnavailable(f"{url} did not answer within {_TIMEOUT:g} s") from None
    finally:
        await client.aclose()
    if incoming.status != 200:
        raise ServiceUnavailable(f"{url} answered {incoming.status}")
    return answer
