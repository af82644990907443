"""`HttpClient`: requests to one origin over kept-alive connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence

from kvestigate import errors
from kvestigate.http import dial
from kvestigate.http.body import ResponseBody
from kvestigate.http.connection import ClientConnection, Unanswered
from kvestigate.http.message import Headers, Incoming, Request, WebSocket

# Below the 90 s after which Go servers, kube-apiserver among them, close an idle connection.
_IDLE_SECONDS = 60.0
_REPLAYABLE = frozenset(("GET", "HEAD", "OPTIONS"))
_WITH_BODY = frozenset(("POST", "PUT", "PATCH"))


class UpgradeRefused(errors.ConnectionFailed):
    """The server answered a WebSocket request with something else than 101."""

    def __init__(self, message: str, *, status: int, headers: Headers, body: bytes) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = body


class HttpClient:
    """Speaks HTTP/1.1 to one origin. Connections are made on demand and kept for reuse."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        proxy: str | None = None,
        opener: Callable[[], Awaitable[socket.socket]] | None = None,
        max_idle: int = 32,
        connect_timeout: float = 10.0,
    ) -> None:
        self._origin = dial.Origin(host, port, tls, server_hostname, proxy, opener)
        self._max_idle = max_idle
        self._connect_timeout = connect_timeout
        self._idle: list[ClientConnection] = []
        self._open: set[ClientConnection] = set()
        self._closed = False
        default_port = 443 if tls is not None else 80
        self._host = self._origin.authority
        if port == default_port:
            self._host = self._host.rpartition(":")[0]
        self._prefix = f"http://{self._origin.authority}" if self._origin.absolute_form else ""
        self._proxy_authorization = ""
        if proxy is not None:
            parts = dial.parse_proxy(proxy)
            if self._origin.absolute_form:
                self._proxy_authorization = dial.proxy_authorization(parts)

    async def send(
        self, request: Request, *, timeout: float | None, read_timeout: float | None = None
    ) -> Incoming:
        """The answer, once its head has come, which may take `timeout` seconds in all.

        `read_timeout` bounds the wait for each further piece of the body.
        """
        head = self._encode(request)
        try:
            async with asyncio.timeout(timeout):
                answer = await self._exchange(head, request)
        except TimeoutError:
            raise self._late(request, timeout) from None
        answer.read_timeout = read_timeout
        return answer

    async def upgrade(
        self,
        request: Request,
        subprotocols: Sequence[str] = (),
        *,
        timeout: float | None,
        max_size: int | None = None,
    ) -> WebSocket:
        """A WebSocket on a connection of its own; raises `UpgradeRefused` if there is none."""
        # Loading websockets takes as long as all else here, and few commands need it.
        from kvestigate.http import handshake, websocket

        offer = handshake.Offer(subprotocols)
        fields = [*request.headers, *offer.fields()]
        upgrade = Request("GET", request.path, request.query, Headers(fields))
        try:
            async with asyncio.timeout(timeout):
                connection = await self._dial()
                answer = await connection.exchange(self._encode(upgrade), upgrade)
                if answer.status != 101:
                    raise UpgradeRefused(
                        f"{self._origin.authority} refused a WebSocket for {request.path}"
                        f" with status {answer.status}",
                        status=answer.status,
                        headers=answer.headers,
                        body=await answer.read(limit=1 << 20),
                    )
        except TimeoutError:
            raise self._late(upgrade, timeout) from None
        self._open.discard(connection)
        try:
            subprotocol = offer.accepted(answer.headers)
        except ValueError as failure:
            connection.abort()
            raise errors.ConnectionFailed(
                f"{self._origin.authority} answered {answer.what} with a wrong handshake: {failure}"
            ) from failure
        return websocket.take_over(
            connection.transport,
            side=websocket.Side.CLIENT,
            subprotocol=subprotocol,
            received=connection.leftover,
            max_size=max_size or websocket.MAX_SIZE,
        )

    async def aclose(self) -> None:
        """Close every connection but upgraded ones; what is still being read fails."""
        self._closed = True
        self._idle.clear()
        lost = [connection.lost for connection in self._open]
        for connection in list(self._open):
            connection.abort()
        for future in lost:
            await future

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Connections.

    async def _exchange(self, head: bytes, request: Request) -> ResponseBody:
        reused = self._take_idle()
        if reused is not None:
            try:
                return await reused.exchange(head, request)
            except Unanswered:
                # The server had given the idle connection up; what it may have acted on
                # must not be sent twice.
                if request.method not in _REPLAYABLE:
                    raise
        connection = await self._dial()
        return await connection.exchange(head, request)

    def _take_idle(self) -> ClientConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.idle_seconds < _IDLE_SECONDS:
                return connection
            connection.close()
        return None

    async def _dial(self) -> ClientConnection:
        if self._closed:
            raise errors.ConnectionFailed(f"the client of {self._origin.authority} is closed")
        connection = await dial.dial(
            self._origin, self._new_connection, timeout=self._connect_timeout
        )
        self._open.add(connection)
        return connection

    def _new_connection(self) -> ClientConnection:
        return ClientConnection(self._origin, self._keep, self._open.discard)

    def _keep(self, connection: ClientConnection) -> None:
        if self._closed or len(self._idle) >= self._max_idle:
            connection.close()
        else:
            self._idle.append(connection)

    # Bytes.

    def _encode(self, request: Request) -> bytes:
        target = f"{self._prefix}{request.path}"
        if request.query:
            target = f"{target}?{request.query}"
        lines = [f"{request.method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers]
        names = {name for name, _ in request.headers}
        if "host" not in names:
            lines.insert(1, f"host: {self._host}")
        if "accept-encoding" not in names:
            lines.append("accept-encoding: gzip")
        if request.body or request.method in _WITH_BODY:
            lines.append(f"content-length: {len(request.body)}")
        if self._proxy_authorization:
            lines.append(f"proxy-authorization: {self._proxy_authorization}")
        head = "\r\n".join(lines)
        # One count for the whole head: a line break or NUL inside any field would be smuggling.
        breaks = len(lines) - 1
        if head.count("\n") != breaks or head.count("\r") != breaks or "\0" in head:
            raise errors.InputError(
                f"a header of {request.method} {request.path!r} has a line break"
            )
        if " " in target or not target.isascii():
            raise errors.InputError(f"path {target!r} is not percent-encoded")
        try:
            return f"{head}\r\n\r\n".encode("latin-1")
        except UnicodeEncodeError as failure:
            raise errors.InputError(
                f"a header of {request.method} {request.path} is not Latin-1"
            ) from failure

    def _late(self, request: Request, timeout: float | None) -> errors.DeadlineExceeded:
        return errors.DeadlineExceeded(
            f"no answer from {self._origin.authority} to {request.method} {request.path}"
            f" within {timeout:g} s"
        )
