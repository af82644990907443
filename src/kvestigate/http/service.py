"""One client's connection to a server: requests in order, answers in the same order.

A connection has one task, from its opening to its end. The task takes requests off the intake one
by one, runs the handler itself and writes the answer, so a client that leaves cancels whatever is
being done for it, and the stream that it was sent is closed. The protocol's callbacks do no work
of a request: they feed the intake (which parses) and wake the task.

What keeps one client from harming the others:

- Flow in: a client that sends requests faster than they are answered is not read from while
  `Limits.pipeline` of them wait.
- Flow out: `_drain` waits while the transport has too much unsent. A client that takes nothing
  for `Limits.write_timeout` is cut off.
- Time: one timer a connection looks now and then at `_deadline`. A request only sets that number,
  which costs less than a timer of its own.
- Long answers are sent in slices, and other connections have their turn after each. The client
  decrypts a slice while the next one is encrypted.

All connections of a server receive into one buffer (`get_buffer`). What is received is copied out
of it before anybody else's turn comes. A protocol without a buffer of its own is given 256 KB of
new memory for every read by the TLS of event loops, which took a tenth of the CPU of a GET.

`Activity` says what the connection is doing, `Intake.phase` says how much of the next request has
come; the two together decide what a deadline, a half-closed connection or the end of the server
means for it.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias, cast

from kvestigate import errors
from kvestigate.http import answer, handshake, websocket
from kvestigate.http.intake import Arrival, Intake, Phase, Refusal, Unserved
from kvestigate.http.limits import Limits
from kvestigate.http.message import Handler, Peer, Request, Response, Upgrade

_log = logging.getLogger(__name__)
_RESULTS = (Response, Upgrade)
_WHOLE = (bytes, list, tuple)
"""Bodies that are no stream."""
_RECEIVE_BYTES = 64 * 1024
_SLICE_BYTES = 64 * 1024
"""Of a long answer, what is encrypted in one piece: whole TLS records, in memory that is reused."""
_TURN_BYTES = 240 * 1024
"""What is sent before other connections come to their turn: a quarter of a millisecond."""


class Activity(enum.Enum):
    """What a connection is doing."""

    WAITING = "waiting"
    HANDLING = "handling"
    STREAMING = "streaming"
    WEBSOCKET = "websocket"
    CLOSING = "closing"


class ClientGone(Exception):
    """The client left, or was cut off, in the middle of an answer."""


RefusalAnswer: TypeAlias = Callable[[Unserved], Awaitable[Response]]
"""Makes the answer, with a body of bytes, to what is too large, slow or garbled."""


class Shared:
    """What the connections of a server share."""

    def __init__(self, handler: Handler, limits: Limits, refusal: RefusalAnswer) -> None:
        self.handler = handler
        self.limits = limits
        self.refusal = refusal
        self.services: set[Service] = set()
        self.dates = answer.Dates()
        self.chunks = answer.Chunks()
        self.received = memoryview(bytearray(_RECEIVE_BYTES))
        """What connections receive into: each copies it out at once."""
        self.closing = False


class Service(asyncio.BufferedProtocol):
    """Serves one connection."""

    def __init__(self, server: Shared) -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._activity = Activity.WAITING
        self._waiter: asyncio.Future[None] | None = None
        """What the task sleeps on while there is nothing to do."""
        self._writable: asyncio.Future[None] | None = None
        self._deadline = math.inf
        self._paused = False
        self._half_closed = False
        self._ending = False
        self._served = False
        self._websocket: websocket.WebSocketConnection | None = None

    # asyncio.BufferedProtocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.write_buffer)
        self._tls = transport.get_extra_info("ssl_object") is not None
        self._intake = Intake(self._limits, _peer(self._transport))
        self._deadline = self._loop.time() + self._limits.head_timeout
        self._timer = self._loop.call_later(self._limits.tick, self._tick)
        self.task = self._loop.create_task(self._serve())
        self._server.services.add(self)
        if self._server.closing:  # accepted before, but its TLS handshake took until now
            self.shut_down()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._server.received

    def buffer_updated(self, nbytes: int) -> None:
        if self._activity is Activity.CLOSING:
            return
        data, intake = bytes(self._server.received[:nbytes]), self._intake
        before = intake.phase
        intake.feed(data)
        if intake.ready or intake.refusal:
            if len(intake.ready) > self._limits.pipeline or intake.upgrading:
                self._pause()
            self._deadline = math.inf
            self._wake()
        elif self._activity is Activity.WAITING and intake.phase is not before:
            self._expect_more()
        elif intake.sink is not None:
            self._deadline += len(data) / self._limits.sink_rate

    def eof_received(self) -> bool:
        self._half_closed = True
        if self._activity is Activity.STREAMING or self._tls:
            # Who watches and stops listening has gone; TLS knows no half-closed connections.
            return False
        answering = self._activity is Activity.HANDLING or bool(self._intake.ready)
        self._wake()
        return answering

    def connection_lost(self, failure: Exception | None) -> None:
        self._timer.cancel()
        self._server.services.discard(self)
        self._intake.abandon()
        self.resume_writing()
        self.task.cancel()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Ending.

    @property
    def idle(self) -> bool:
        """Whether nothing has been asked that is still to be answered."""
        return self._activity is Activity.WAITING and not self._intake.ready

    def shut_down(self) -> None:
        """Finish what is being answered, end streams, then close."""
        self._ending = True
        if self.idle:
            self._close()
        elif self._activity is Activity.STREAMING:
            self.task.cancel()
        elif self._websocket is not None:
            self._websocket.start_close(websocket.CloseCode.GOING_AWAY, "the server stops")

    def abort(self) -> None:
        self._transport.abort()
        self.task.cancel()

    def _close(self) -> None:
        self._activity = Activity.CLOSING
        self._deadline = self._loop.time() + self._limits.write_timeout
        self._transport.close()

    # Deadlines. One timer a connection looks now and then; a request only sets a number.

    def _tick(self) -> None:
        left = self._deadline - self._loop.time()
        if left <= 0:
            self._expire()
            left = self._limits.tick
        self._timer = self._loop.call_later(min(left, self._limits.tick), self._tick)

    def _expire(self) -> None:
        if self._activity is Activity.CLOSING:
            self._transport.abort()
        elif self._intake.phase is Phase.NOTHING:
            self._close()
        else:
            part = self._intake.phase.value
            self._intake.refusal = Refusal(408, f"the request's {part} took too long")
            self._deadline = math.inf
            self._wake()

    def _expect_more(self) -> None:
        """The connection waits for a client that has begun a request."""
        limits, phase = self._limits, self._intake.phase
        allowed = limits.head_timeout if phase is Phase.HEAD else limits.body_timeout
        self._deadline = self._loop.time() + allowed
        if phase is Phase.BODY and self._intake.wants_continue:
            self._intake.wants_continue = False
            self._transport.write(answer.CONTINUE)

    # The loop.

    async def _serve(self) -> None:
        try:
            keep_alive = True
            while keep_alive and not self._transport.is_closing():
                if self._intake.ready:
                    keep_alive = await self._answer(self._intake.ready.popleft())
                elif self._intake.refusal is not None:
                    await self._refuse(self._intake.refusal)
                    break
                elif self._half_closed:
                    break
                else:
                    await self._wait()
        except asyncio.CancelledError:
            # The connection is lost, or the server aborts it: either way it ends here.
            pass
        except ClientGone:
            self._transport.abort()
        finally:
            if self._websocket is None:
                self._close()
            else:
                self._timer.cancel()
                self._server.services.discard(self)

    async def _wait(self) -> None:
        """Wait for a request."""
        self._activity = Activity.WAITING
        if self._intake.phase is Phase.NOTHING:
            if self._served:
                self._deadline = self._loop.time() + self._limits.idle_timeout
        else:
            self._expect_more()
        if self._paused:
            self._resume()
        self._waiter = self._loop.create_future()
        await self._waiter

    async def _answer(self, arrival: Arrival) -> bool:
        """Answer one request; whether the connection can take another."""
        self._activity = Activity.HANDLING
        self._served = True
        try:
            result = await self._server.handler(arrival.request)
            if not isinstance(result, _RESULTS):
                raise TypeError(f"the handler returned {result!r}")
        except asyncio.CancelledError:
            if self.task.cancelling():
                raise
            result = _broken(arrival.request)
        except Exception:  # noqa: BLE001  the top level of a request: the client gets an answer
            result = _broken(arrival.request)
        if isinstance(result, Upgrade):
            return await self._upgrade(arrival, result)
        keep_alive = arrival.keep_alive and not arrival.upgrade and not self._ending
        try:
            if not isinstance(result.body, _WHOLE):
                return await self._send_stream(arrival, result, keep_alive)
            await self._send_whole(arrival, result, keep_alive)
        except (answer.BadField, TypeError):  # pieces or fields of a wrong kind
            await self._send_whole(arrival, _broken(arrival.request), keep_alive)
        return keep_alive

    async def _refuse(self, refusal: Refusal) -> None:
        self._activity = Activity.HANDLING
        response = await self._server.refusal(self._intake.unserved(refusal))
        body = cast(bytes, response.body)
        head = answer.head(
            response.status,
            response.headers,
            framing=b"content-length: %d\r\n" % len(body),
            connection=answer.CLOSE,
            date=self._server.dates.field(),
        )
        self._activity = Activity.CLOSING
        self._transport.write(head + body)
        # Closing with input unread resets the connection, and the answer may die with it.
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._resume()
        await asyncio.sleep(self._limits.linger)

    # Answers.

    async def _send_whole(self, arrival: Arrival, response: Response, keep_alive: bool) -> None:
        body = cast("bytes | Sequence[bytes]", response.body)
        pieces: Sequence[bytes] = (body,) if isinstance(body, bytes) else body
        length = sum(map(len, pieces))
        fields: Sequence[tuple[str, str]] = response.headers
        if (
            length >= self._limits.gzip_min
            and response.compress
            and answer.accepts_gzip(arrival.request)
        ):
            fields = [*fields, ("content-encoding", "gzip"), ("vary", "accept-encoding")]
            pieces = (await asyncio.to_thread(answer.gzipped, pieces),)
            length = len(pieces[0])
        has_body = answer.has_body(response.status)
        framing = b"content-length: %d\r\n" % length if has_body else b""
        head = self._head(arrival, response.status, fields, framing, keep_alive)
        if not has_body or arrival.request.method == "HEAD":
            self._transport.write(head)
        elif length <= _SLICE_BYTES:
            self._transport.write(b"".join((head, *pieces)))
        else:
            await self._send_slices((head, *pieces))
        if self._writable is not None:
            await self._drain()

    async def _send_slices(self, pieces: Sequence[bytes]) -> None:
        """Encrypt one slice while the client reads the last, and let others have their turn."""
        sent = 0
        try:
            for part in answer.slices(pieces, _SLICE_BYTES):
                self._transport.write(part)
                sent += len(part)
                if self._writable is not None:
                    await self._drain()
                elif sent >= _TURN_BYTES:
                    await asyncio.sleep(0)
                    sent = 0
        except TypeError as failure:  # a piece of a wrong kind, after others were sent
            _log.exception("an answer failed")
            raise ClientGone from failure

    async def _send_stream(self, arrival: Arrival, response: Response, keep_alive: bool) -> bool:
        stream = cast(AsyncIterator[bytes], response.body)
        chunked = not arrival.http_1_0
        keep_alive = keep_alive and chunked
        framing = answer.CHUNKED if chunked else b""
        self._activity = Activity.STREAMING
        try:
            head = self._head(arrival, response.status, response.headers, framing, keep_alive)
            self._transport.write(head)
            if answer.has_body(response.status) and arrival.request.method != "HEAD":
                await self._pump(stream, chunked)
        finally:
            await _close_stream(stream)
        return keep_alive and not self._ending

    async def _pump(self, stream: AsyncIterator[bytes], chunked: bool) -> None:
        write = self._transport.write
        try:
            if self._half_closed:
                raise ClientGone
            async for piece in stream:
                if not piece:
                    continue
                write(self._server.chunks.of(piece) if chunked else piece)
                if self._writable is not None:
                    await self._drain()
        except asyncio.CancelledError:
            if not self._ending or self._transport.is_closing():
                raise
            # The server stops: a stream cut between two pieces has a proper end.
            self.task.uncancel()
        except ClientGone:
            raise
        except errors.KvestigateError as failure:  # a backend broke off: no news to the operator
            _log.debug("a stream ended early: %s", failure)
            raise ClientGone from failure
        except Exception as failure:  # the top level of a stream: only a cut can tell the client
            _log.exception("a stream failed")
            raise ClientGone from failure
        if chunked:
            write(answer.LAST_CHUNK)

    def _head(
        self,
        arrival: Arrival,
        status: int,
        fields: Sequence[tuple[str, str]],
        framing: bytes,
        keep_alive: bool,
    ) -> bytes:
        connection = b"" if keep_alive else answer.CLOSE
        if keep_alive and arrival.http_1_0:
            connection = answer.KEEP_ALIVE
        date = self._server.dates.field()
        return answer.head(status, fields, framing=framing, connection=connection, date=date)

    async def _upgrade(self, arrival: Arrival, upgrade: Upgrade) -> bool:
        request = arrival.request
        try:
            fields = handshake.accept(request, upgrade.subprotocol)
        except ValueError as failure:
            await self._send_whole(arrival, plain(400, str(failure)), keep_alive=False)
            return False
        self._transport.write(answer.head(101, fields[1:], framing=b"", connection=answer.UPGRADE))
        self._activity = Activity.WEBSOCKET
        self._websocket = channel = websocket.take_over(
            self._transport,
            side=websocket.Side.SERVER,
            subprotocol=upgrade.subprotocol,
            received=self._intake.tail,
            max_size=self._limits.websocket_message,
        )
        code = websocket.CloseCode.NORMAL_CLOSURE
        try:
            await upgrade.run(channel)
        except Exception:  # noqa: BLE001  the top level of a WebSocket: the peer gets a close code
            _log.exception("the WebSocket of %s failed", request.path)
            code = websocket.CloseCode.INTERNAL_ERROR
        finally:
            await channel.close(code)
        return False

    # Flow.

    async def _drain(self) -> None:
        writable = self._writable
        if writable is None:
            return
        try:
            async with asyncio.timeout(self._limits.write_timeout):
                await writable
        except TimeoutError:
            raise ClientGone from None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _pause(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()


async def _close_stream(stream: AsyncIterator[bytes]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


def _broken(request: Request) -> Response:
    """For an exception that nobody expected, which is being handled."""
    _log.exception("%s %s failed", request.method, request.path)
    return plain(500, "internal error")


async def plain_refusal(unserved: Unserved) -> Response:
    """How a request is refused that never reached the handler."""
    return plain(unserved.status, unserved.reason)


def plain(status: int, text: str) -> Response:
    fields = [("content-type", "text/plain; charset=utf-8")]
    return Response(status, fields, text.encode(), compress=False)


def _peer(transport: asyncio.Transport) -> Peer:
    name = transport.get_extra_info("peername")
    address = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""
    tls = transport.get_extra_info("ssl_object")
    return Peer(address, None if tls is None else tls.getpeercert(binary_form=True))
