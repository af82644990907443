"""The plain way to ask an identity provider: the standard library, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kvestigate.client.auth.interface import Fetch
from kvestigate.errors import ConnectionFailed

TIMEOUT = 30.0
_MOST = 1 << 20
"""Bytes of an answer; discovery documents are a few kilobytes."""


async def fetch(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None,
    ca: bytes | None,
) -> tuple[int, bytes]:
    """One request. Rare enough, once a token's life, that a thread is no burden."""
    return await asyncio.to_thread(_request, method, url, dict(headers), body, ca)


def _request(
    method: str, url: str, headers: dict[str, str], body: bytes | None, ca: bytes | None
) -> tuple[int, bytes]:
    import http.client
    import ssl
    import urllib.error
    import urllib.request

    if not url.startswith(("https://", "http://")):
        raise ConnectionFailed("the identity provider's URL must start with https:// or http://")
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        # Text around the PEM blocks may be in any language; only the blocks count.
        trusted = None if ca is None else ca.decode("ascii", "ignore")
        context = ssl.create_default_context(cadata=trusted)
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as response:
            return response.status, response.read(_MOST)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_MOST)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ConnectionFailed(f"the identity provider at {url} did not answer: {reason}") from None


_fetch: Fetch = fetch
