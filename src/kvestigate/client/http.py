"""The transport to a server elsewhere: HTTP with the user's credentials on every request."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kvestigate import __version__, errors
from kvestigate.client.access import Access
from kvestigate.client.auth.interface import Credential
from kvestigate.client.call import failure
from kvestigate.http.message import Headers, Incoming, Request, WebSocket
from kvestigate.http.pool import HttpClient, UpgradeRefused
from kvestigate.http.tls import client_context

A = TypeVar("A")

USER_AGENT = f"kvestigate/{__version__}"


class HttpTransport:
    """Requests to `access.server`. A renewed client certificate gets new connections."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._constant = _constant_fields(access)
        self._client: HttpClient | None = None
        self._retired: HttpClient | None = None
        self._shown: tuple[bytes | None, bytes | None] = (None, None)
        self._closed = False

    async def send(self, request: Request, *, timeout: float | None) -> Incoming:
        async def attempt(client: HttpClient, dressed: Request) -> tuple[int, Incoming]:
            incoming = await client.send(dressed, timeout=timeout)
            return incoming.status, incoming

        status, incoming, used = await self._attempt(request, attempt)
        if status == 401 and await self._access.credentials.rejected(used):
            await incoming.aclose()
            _, incoming, _ = await self._attempt(request, attempt)
        return incoming

    async def upgrade(
        self, request: Request, subprotocols: Sequence[str], *, timeout: float | None
    ) -> WebSocket:
        async def attempt(
            client: HttpClient, dressed: Request
        ) -> tuple[int, WebSocket | UpgradeRefused]:
            try:
                return 101, await client.upgrade(dressed, subprotocols, timeout=timeout)
            except UpgradeRefused as refused:
                return refused.status, refused

        status, answer, used = await self._attempt(request, attempt)
        if status == 401 and await self._access.credentials.rejected(used):
            _, answer, _ = await self._attempt(request, attempt)
        if isinstance(answer, UpgradeRefused):
            raise failure(request, answer.status, answer.body) from answer
        return answer

    async def aclose(self) -> None:
        self._closed = True
        for client in (self._client, self._retired):
            if client is not None:
                await client.aclose()

    async def _attempt(
        self,
        request: Request,
        attempt: Callable[[HttpClient, Request], Awaitable[tuple[int, A]]],
    ) -> tuple[int, A, Credential]:
        used = await self._access.credentials.current()
        client = await self._client_for(used)
        status, answer = await attempt(client, self._dressed(request, used))
        return status, answer, used

    async def _client_for(self, credential: Credential) -> HttpClient:
        if self._closed:
            raise errors.ConnectionFailed(f"the client of {self._access.server} is closed")
        shown = (credential.certificate, credential.key)
        if self._client is not None and shown == self._shown:
            return self._client
        # Streams of the last client may go on: they end long before the next renewal.
        old, self._retired = self._retired, self._client
        self._client = self._new_client(credential)
        self._shown = shown
        client = self._client
        if old is not None:
            await old.aclose()
        return client

    def _new_client(self, credential: Credential) -> HttpClient:
        server, tls = self._access.server, self._access.tls
        context = None
        if server.secure:
            context = client_context(
                ca=tls.ca,
                insecure=tls.insecure,
                certificate=credential.certificate,
                key=credential.key,
            )
        return HttpClient(
            host=server.host,
            port=server.port,
            tls=context,
            server_hostname=tls.server_name,
            proxy=self._access.proxy_url,
        )

    def _dressed(self, request: Request, credential: Credential) -> Request:
        fields = [*request.headers, *self._constant]
        if credential.token:
            fields.append(("authorization", f"Bearer {credential.token}"))
        elif credential.basic:
            pair = ":".join(credential.basic).encode()
            fields.append(("authorization", f"Basic {base64.b64encode(pair).decode()}"))
        path = self._access.server.base_path + request.path
        return Request(request.method, path, request.query, Headers(fields), request.body)


def _constant_fields(access: Access) -> list[tuple[str, str]]:
    fields = [("user-agent", USER_AGENT)]
    if access.disable_compression:
        fields.append(("accept-encoding", "identity"))
    if access.impersonate is not None:
        fields += access.impersonate.headers()
    return fields
