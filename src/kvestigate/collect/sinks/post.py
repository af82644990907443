"""Events as the bodies of HTTP POST requests.

One event is sent as a JSON object, several as a JSON array. What may work later (no
connection, silence, 408, 429, 5xx) is `Unavailable`; any other answer but 2xx is `Rejected`.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from kvestigate import __version__, errors
from kvestigate.client.endpoint import parse_endpoint, proxy_from_environment
from kvestigate.collect.sinks.interface import Rejected, Unavailable
from kvestigate.http.message import Headers, Request
from kvestigate.http.pool import HttpClient
from kvestigate.http.tls import client_context

TIMEOUT = 30.0
"""Seconds for the whole of an answer."""

_LATER = frozenset((408, 425, 429))
_MOST_ANSWER = 64 * 1024


class PostSink:
    """POSTs to one URL."""

    name = "post"

    def __init__(
        self,
        url: str,
        *,
        environ: Mapping[str, str],
        token: str = "",
        compress: bool = False,
        option: str = "--post",
    ) -> None:
        """`environ` may name a proxy; `token` is sent as a bearer token; `option` gave the URL."""
        try:
            endpoint = parse_endpoint(url)
        except ValueError as error:
            raise errors.InputError(
                f"not a URL: {error}", where=option, hint="write http://HOST:PORT/PATH"
            ) from None
        parts = urlsplit(url if "://" in url else f"http://{url}")
        self._path = parts.path or "/"
        self._query = parts.query
        self._client = HttpClient(
            host=endpoint.host,
            port=endpoint.port,
            tls=client_context() if endpoint.secure else None,
            proxy=proxy_from_environment(endpoint, environ),
        )
        self._compress = compress
        fields = [("content-type", "application/json"), ("user-agent", f"kvestigate/{__version__}")]
        if token:
            fields.append(("authorization", f"Bearer {token}"))
        if compress:
            fields.append(("content-encoding", "gzip"))
        self._fields = fields

    async def send(self, lines: Sequence[bytes]) -> None:
        body = lines[0] if len(lines) == 1 else b"[" + b",".join(lines) + b"]"
        if self._compress:
            body = gzip.compress(body, compresslevel=1)
        request = Request("POST", self._path, self._query, Headers(self._fields), body)
        try:
            incoming = await self._client.send(request, timeout=TIMEOUT, read_timeout=TIMEOUT)
            try:
                # Read, so that the connection can be used again.
                await incoming.read(_MOST_ANSWER)
            finally:
                await incoming.aclose()
        except errors.KvestigateError as error:
            raise Unavailable(error.message) from error
        status = incoming.status
        if status in _LATER or status >= 500:
            raise Unavailable(f"the server answered {status}")
        if not 200 <= status < 300:
            raise Rejected(f"the server answered {status}")

    async def aclose(self) -> None:
        await self._client.aclose()
