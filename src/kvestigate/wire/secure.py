"""TLS on the socket itself, for servers.

An event loop puts TLS between a transport and a protocol, with a buffer in memory on either
side. OpenSSL can read from and write to a socket: what is sent is encrypted into the kernel's
buffer and what is received is decrypted out of it, in one step each.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, cast

_RECORD = 16 * 1024
"""The most that one TLS record holds. Who has more to say fills them."""
_BUFFER = 64 * 1024
"""The most that is read into a protocol's buffer at once, if it is as large as that."""
_RECORDS = 16
"""Records taken from one connection before others come to their turn."""
_HIGH_WATER = 64 * 1024

_CORK: int = getattr(socket, "TCP_CORK", 0)
"""The option that has the kernel fill packets before it sends them; 0 where there is none."""

Protocol = asyncio.Protocol | asyncio.BufferedProtocol


class SecureTransport(asyncio.Transport):
    """A connection whose keys are agreed on."""

    def __init__(self, connected: ssl.SSLSocket, protocol: Protocol) -> None:
        super().__init__({"ssl_object": connected, "peername": _peer_name(connected)})
        self._loop = asyncio.get_running_loop()
        self._socket = connected
        self._read: Callable[[int, object], int] = cast(Any, connected.read)
        self._descriptor = connected.fileno()
        self._unsent: deque[bytes | memoryview] = deque()
        self._size = 0
        """Bytes of all that is unsent."""
        self._high, self._low = _HIGH_WATER, _HIGH_WATER // 4
        self._choked = False
        self._reading = False
        self._closing = False
        self._lost = False
        self.set_protocol(protocol)
        protocol.connection_made(self)
        if not self._closing:
            self.resume_reading()

    # Reading.

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._receive: Callable[[], None]
        if isinstance(protocol, asyncio.BufferedProtocol):
            self._receive = partial(self._fill_buffer, protocol)
        else:
            self._receive = partial(self._hand_over, cast(asyncio.Protocol, protocol))
        if self._reading:
            self._loop.add_reader(self._descriptor, self._receive)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False
        self._loop.remove_reader(self._descriptor)

    def resume_reading(self) -> None:
        if not self._closing:
            self._reading = True
            self._loop.add_reader(self._descriptor, self._receive)

    def _fill_buffer(self, protocol: asyncio.BufferedProtocol) -> None:
        for _ in range(_RECORDS):
            try:
                count = self._read(_BUFFER, protocol.get_buffer(-1))
            except ssl.SSLWantReadError:
                return
            except OSError as failure:
                self._lose(failure)
                return
            if not count:
                self._end()
                return
            protocol.buffer_updated(count)
            # What a record did not fill was followed by nothing, most likely; else there will
            # be another call.
            if count < _RECORD or not self._reading:
                return

    def _hand_over(self, protocol: asyncio.Protocol) -> None:
        for _ in range(_RECORDS):
            try:
                data = self._socket.read(_RECORD)
            except ssl.SSLWantReadError:
                return
            except OSError as failure:
                self._lose(failure)
                return
            if not data:
                self._end()
                return
            protocol.data_received(data)
            if len(data) < _RECORD or not self._reading:
                return

    def _end(self) -> None:
        """The client has said that nothing follows. TLS knows no half-closed connections."""
        cast(Protocol, self._protocol).eof_received()
        self.close()

    # Writing.

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _HIGH_WATER if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._size

    def can_write_eof(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        sent = 0
        if not self._unsent:
            try:
                sent = self._send(data)
            except ssl.SSLWantWriteError:
                pass
            except OSError as failure:
                self._lose(failure)
                return
            if sent == len(data):
                return
            self._loop.add_writer(self._descriptor, self._send_more)
        rest = bytes(data) if sent == 0 else bytes(data)[sent:]
        self._unsent.append(rest)
        self._size += len(rest)
        if self._size > self._high and not self._choked:
            self._choked = True
            self._protocol.pause_writing()

    def _send(self, data: bytes | bytearray | memoryview) -> int:
        if len(data) <= _RECORD or not _CORK:
            return self._socket.write(data)
        # Records are written one by one, and four of them go over loopback in one packet.
        self._socket.setsockopt(socket.IPPROTO_TCP, _CORK, 1)
        try:
            return self._socket.write(data)
        finally:
            self._socket.setsockopt(socket.IPPROTO_TCP, _CORK, 0)

    def _send_more(self) -> None:
        while self._unsent:
            part = self._unsent[0]
            try:
                # OpenSSL insists on being given again what it could not take before.
                sent = self._send(part)
            except ssl.SSLWantWriteError:
                break
            except OSError as failure:
                self._lose(failure)
                return
            self._size -= sent
            if sent < len(part):
                self._unsent[0] = memoryview(part)[sent:]
            else:
                self._unsent.popleft()
        if self._choked and self._size <= self._low:
            self._choked = False
            self._protocol.resume_writing()
        if not self._unsent:
            self._loop.remove_writer(self._descriptor)
            if self._closing:
                self._take_leave()

    # Ending.

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Send what is unsent, then say so, and wait for the client to have understood."""
        if not self._closing:
            self._closing = True
            self.pause_reading()
            if not self._unsent:
                self._take_leave()

    def abort(self) -> None:
        self._lose(None)

    def _take_leave(self) -> None:
        try:
            self._socket.unwrap()
        except ssl.SSLWantReadError:
            # A socket that is closed with something unread takes back what it has sent.
            self._loop.remove_writer(self._descriptor)
            self._loop.add_reader(self._descriptor, self._ignore)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(self._descriptor, self._take_leave)
        except OSError:
            self._lose(None)
        else:
            self._lose(None)

    def _ignore(self) -> None:
        try:
            for _ in range(_RECORDS):
                if not self._socket.read(_RECORD):
                    self._lose(None)
                    return
        except ssl.SSLWantReadError:
            pass
        except OSError:
            self._lose(None)

    def _lose(self, failure: OSError | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._reading = False
            self._loop.remove_reader(self._descriptor)
            self._loop.remove_writer(self._descriptor)
            self._unsent.clear()
            self._loop.call_soon(self._tell, failure)

    def _tell(self, failure: OSError | None) -> None:
        try:
            self._protocol.connection_lost(failure)
        finally:
            self._socket.close()


def _peer_name(connected: socket.socket) -> object:
    try:
        return connected.getpeername()
    except OSError:  # it has gone again
        return None
