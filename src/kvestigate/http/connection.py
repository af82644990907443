"""The client's side of one HTTP/1.1 connection: one exchange at a time, over and over."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from typing import cast

import httptools

from kvestigate import errors
from kvestigate.http import body, dial
from kvestigate.http.message import Headers, Request

_HEAD_LIMIT = 256 * 1024
# In TLS 1.3 a server judges the client's certificate when the client is done, often silently.
_SILENT_TLS_HINT = "it may not accept our client certificate, or want one"


class Phase(enum.Enum):
    """Where an exchange is."""

    IDLE = "idle"
    SENT = "sent"
    """Nothing of the answer has come."""
    HEAD = "head"
    BODY = "body"
    UPGRADED = "upgraded"
    CLOSED = "closed"


class Unanswered(errors.ConnectionFailed):
    """The connection ended before a single byte of the answer."""


class ClientConnection(asyncio.Protocol):
    """Sends a request, parses its answer, and says when it can take the next."""

    def __init__(
        self,
        origin: dial.Origin,
        on_idle: Callable[[ClientConnection], None],
        on_lost: Callable[[ClientConnection], None],
    ) -> None:
        self._origin = origin
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self.phase = Phase.IDLE
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._idle_since = 0.0
        self._failure: errors.ConnectionFailed | None = None
        self._what = ""
        self._method = ""
        self._parser: httptools.HttpResponseParser | None = None
        self._fields: list[tuple[str, str]] = []
        self._head_size = 0
        self._head: asyncio.Future[body.ResponseBody] | None = None
        self._body: body.ResponseBody | None = None
        self._until_close = False
        self._keep_alive = False
        self.leftover = b""
        """What came behind a 101: the first bytes of the new protocol."""

    # Exchanges.

    @property
    def usable(self) -> bool:
        return self.phase is Phase.IDLE and not self.transport.is_closing()

    @property
    def idle_seconds(self) -> float:
        return self._loop.time() - self._idle_since

    async def exchange(self, head: bytes, request: Request) -> body.ResponseBody:
        """The answer to `request`, whose encoded head is `head`, once its own head has come."""
        if self.transport.is_closing():
            raise self._failure or Unanswered(
                f"{self._origin.authority} closed the connection before {request.method}"
                f" {request.path} was sent"
            )
        self.phase = Phase.SENT
        self._method = request.method
        self._what = f"{request.method} {request.path}"
        self._parser = httptools.HttpResponseParser(self)
        self._fields = []
        self._head_size = 0
        self._until_close = False
        self._head = self._loop.create_future()
        if len(request.body) > body.HIGH_WATER:
            self.transport.write(head)
            self.transport.write(request.body)
        else:
            self.transport.write(head + request.body)
        try:
            return await self._head
        except asyncio.CancelledError:
            self.abort()
            raise

    def abort(self) -> None:
        self.phase = Phase.CLOSED
        self.transport.abort()

    def close(self) -> None:
        self.phase = Phase.CLOSED
        self.transport.close()

    def pause(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            # A server that talks without being asked is not in step with us.
            self.abort()
            return
        if self.phase is Phase.SENT:
            self.phase = Phase.HEAD
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.leftover = bytes(data[upgrade.args[0] :])
        except httptools.HttpParserError as failure:
            self._break(
                errors.ConnectionFailed(
                    f"{self._origin.authority} answered {self._what} with broken HTTP: {failure}"
                )
            )
        else:
            self._check_head_size(len(data))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, failure: Exception | None) -> None:
        if self._until_close and failure is None and self.phase is Phase.BODY:
            self._complete()
        elif isinstance(failure, OSError):
            self._failure = dial.explain(failure, self._origin.authority)
            self._break(self._failure)
        elif self.phase is Phase.BODY:
            self._break(
                errors.ConnectionFailed(
                    f"{self._origin.authority} closed the connection"
                    f" before the end of its answer to {self._what}"
                )
            )
        else:
            self._break(
                errors.ConnectionFailed(
                    f"{self._origin.authority} closed the connection"
                    f" without an answer to {self._what}"
                )
            )
        self.phase = Phase.CLOSED
        self._on_lost(self)
        if not self.lost.done():
            self.lost.set_result(None)

    # The parser's callbacks.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        if self._parser is None:
            raise ValueError("a second answer to one request")
        status = self._parser.get_status_code()
        headers = Headers(self._fields)
        self._fields = []
        if 100 <= status < 200 and status != 101:
            return
        self._body = body.ResponseBody(
            self, status, headers, f"{self._what} of {self._origin.authority}"
        )
        self.phase = Phase.BODY
        self._keep_alive = self._parser.should_keep_alive()
        self._until_close = "content-length" not in headers and "transfer-encoding" not in headers
        if self._method == "HEAD":
            # The parser does not know that no body follows, whatever the header says.
            self._keep_alive = "close" not in headers.get("connection").lower()
        if self._head is not None and not self._head.done():
            self._head.set_result(self._body)
        if status == 101:
            self._upgraded()
        elif self._method == "HEAD":
            self._complete()

    def on_body(self, data: bytes) -> None:
        if self._body is not None:
            self._body.feed(data)

    def on_message_complete(self) -> None:
        if self.phase is Phase.BODY:
            self._complete()

    # Ends.

    def _check_head_size(self, received: int) -> None:
        if self.phase is not Phase.HEAD:
            return
        self._head_size += received
        if self._head_size > _HEAD_LIMIT:
            self._break(
                errors.ConnectionFailed(
                    f"the header of the answer to {self._what} of {self._origin.authority}"
                    f" is longer than {_HEAD_LIMIT} bytes"
                )
            )

    def _upgraded(self) -> None:
        assert self._body is not None
        self.phase = Phase.UPGRADED
        self._body.finish()
        # Until the new owner takes the transport over, nothing may come in unseen.
        self.pause()

    def _complete(self) -> None:
        answer, self._body = self._body, None
        self._parser = None
        if answer is not None:
            answer.finish()
        if self._keep_alive:
            self.phase = Phase.IDLE
            self._idle_since = self._loop.time()
            self._on_idle(self)
        else:
            self.close()

    def _break(self, failure: errors.ConnectionFailed) -> None:
        if self.phase is Phase.SENT:
            silent = _SILENT_TLS_HINT if self._origin.tls is not None else None
            failure = Unanswered(failure.message, hint=failure.hint or silent)
        if self._head is not None and not self._head.done():
            self._head.set_exception(failure)
        if self._body is not None:
            self._body.fail(failure)
            self._body = None
        self._parser = None
        self.abort()
