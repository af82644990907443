"""WebSocket messages over a connection that HTTP has handed over, the same for both sides.

Framing is websockets' sans-I/O protocol; here are the socket, the queue of received
messages, flow control and the closing handshake.
"""

from __future__ import annotations

import asyncio
from collections import deque

from websockets.exceptions import InvalidState
from websockets.frames import BINARY, CLOSE, CONT, TEXT, CloseCode, Frame
from websockets.protocol import SEND_EOF, Protocol, Side, State

from kvestigate import errors

__all__ = ["MAX_SIZE", "CloseCode", "Side", "WebSocketConnection", "take_over"]

MAX_SIZE = 32 * 1024 * 1024
"""Bytes of a message, all its fragments together."""
_HIGH_WATER = 256 * 1024
_CLOSE_SECONDS = 5.0


class WebSocketConnection(asyncio.Protocol):
    """One open WebSocket (`message.WebSocket`)."""

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        side: Side,
        subprotocol: str | None,
        max_size: int,
    ) -> None:
        self.subprotocol = subprotocol
        self._transport = transport
        self._framing = Protocol(side, state=State.OPEN, max_size=max_size)
        self.close_timeout = _CLOSE_SECONDS
        """How long a peer may take to agree to a close."""
        self._loop = asyncio.get_running_loop()
        self._messages: deque[bytes | str] = deque()
        self._buffered = 0
        self._paused = False
        self._fragments: list[bytes] = []
        self._text = False
        self._not_text = False
        self._leaving = False
        self._receiver: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._cutoff: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None

    # message.WebSocket.

    @property
    def close_code(self) -> int | None:
        """What the peer closed with; None while open, 1006 if it just went away."""
        received = self._framing.close_rcvd
        if received is not None:
            return received.code
        return CloseCode.ABNORMAL_CLOSURE if self._lost.done() else None

    async def send(self, message: bytes | str) -> None:
        """Hand `message` to the socket; waits while the peer is slow to take it."""
        try:
            if isinstance(message, str):
                self._framing.send_text(message.encode())
            else:
                self._framing.send_binary(message)
        except InvalidState:
            raise errors.ConnectionFailed(f"the WebSocket is closed: {self._ending()}") from None
        self._flush()
        await self._drain()

    async def receive(self) -> bytes | str | None:
        """The next message; None once the peer has closed; an error if it just went away."""
        while not self._messages:
            if self._violation():
                raise self._broken()
            if self._framing.close_rcvd is not None:
                return None
            if self._lost.done():
                if self._framing.close_sent is not None:
                    return None
                raise self._broken()
            self._receiver = self._loop.create_future()
            try:
                await self._receiver
            finally:
                self._receiver = None
        message = self._messages.popleft()
        self._buffered -= len(message)
        if self._paused and self._buffered < _HIGH_WATER // 2:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return message

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """The closing handshake; a peer that does not answer in time is cut off."""
        self.start_close(code, reason)
        # The peer's answer may be behind messages nobody will receive any more.
        self._leaving = True
        self._messages.clear()
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
        try:
            async with asyncio.timeout(self.close_timeout):
                await asyncio.shield(self._lost)
        except TimeoutError:
            self._transport.abort()
        except asyncio.CancelledError:
            self._transport.abort()
            raise

    def start_close(self, code: int, reason: str = "") -> None:
        """Say that we close; `receive` goes on until the peer has agreed."""
        if self._framing.state is State.OPEN:
            self._framing.send_close(code, reason)
            self._flush()

    # asyncio.Protocol.

    def data_received(self, data: bytes) -> None:
        self._framing.receive_data(data)
        for event in self._framing.events_received():
            if isinstance(event, Frame):
                self._take(event)
        self._flush()
        self._wake()

    def eof_received(self) -> bool:
        self._framing.receive_eof()
        self._flush()
        self._wake()
        return False

    def connection_lost(self, failure: Exception | None) -> None:
        self._failure = failure
        if self._cutoff is not None:
            self._cutoff.cancel()
        if self._framing.state is not State.CLOSED:
            self._framing.receive_eof()
        if not self._lost.done():
            self._lost.set_result(None)
        self.resume_writing()
        self._wake()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Frames.

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (BINARY, TEXT, CONT):
            if frame.opcode is not CONT:
                self._text = frame.opcode is TEXT
            self._fragments.append(bytes(frame.data))
            if frame.fin:
                self._deliver(b"".join(self._fragments))
                self._fragments.clear()
        elif frame.opcode is CLOSE:
            self._fragments.clear()

    def _deliver(self, message: bytes) -> None:
        if self._text:
            try:
                self._queue(message.decode())
            except UnicodeDecodeError:
                self._not_text = True
                self._framing.fail(CloseCode.INVALID_DATA, "text that is not UTF-8")
        else:
            self._queue(message)

    def _queue(self, message: bytes | str) -> None:
        if self._leaving:
            return
        self._messages.append(message)
        self._buffered += len(message)
        if self._buffered > _HIGH_WATER and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _flush(self) -> None:
        pieces = self._framing.data_to_send()
        if self._transport.is_closing():
            return
        ends = SEND_EOF in pieces
        data = b"".join(pieces)
        if data:
            self._transport.write(data)
        if ends or self._framing.state is State.CLOSED:
            # Both close frames are on their way, so nothing is lost by closing fully.
            self._transport.close()
        elif self._framing.close_expected() and self._cutoff is None:
            self._cutoff = self._loop.call_later(self.close_timeout, self._transport.abort)

    async def _drain(self) -> None:
        if self._writable is not None:
            await asyncio.shield(self._writable)
        if self._lost.done():
            raise errors.ConnectionFailed(f"the WebSocket is closed: {self._ending()}")

    def _wake(self) -> None:
        if self._receiver is not None and not self._receiver.done():
            self._receiver.set_result(None)

    def _violation(self) -> str:
        """How the peer broke the protocol, empty if it did not."""
        if self._not_text:
            return "the peer sent text that is not UTF-8"
        broken = self._framing.parser_exc
        return "" if broken is None or isinstance(broken, EOFError) else str(broken)

    def _ending(self) -> str:
        received = self._framing.close_rcvd
        if received is not None:
            return f"the peer closed it with {received}"
        violation = self._violation()
        if violation:
            return violation
        if self._framing.close_sent is not None:
            return f"we closed it with {self._framing.close_sent}"
        return f"the connection was lost{f': {self._failure}' if self._failure else ''}"

    def _broken(self) -> errors.ConnectionFailed:
        return errors.ConnectionFailed(f"the WebSocket broke: {self._ending()}")


def take_over(
    transport: asyncio.Transport,
    *,
    side: Side,
    subprotocol: str | None,
    received: bytes = b"",
    max_size: int = MAX_SIZE,
) -> WebSocketConnection:
    """The WebSocket on `transport`, whose HTTP has ended; `received` came behind the handshake."""
    connection = WebSocketConnection(
        transport, side=side, subprotocol=subprotocol, max_size=max_size
    )
    transport.set_protocol(connection)
    transport.set_write_buffer_limits(high=_HIGH_WATER)
    if received:
        connection.data_received(received)
    if not transport.is_closing():
        transport.resume_reading()
    return connection
