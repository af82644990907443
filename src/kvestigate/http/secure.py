"""TLS on the socket itself, for servers.

An event loop puts TLS between a transport and a protocol, with a buffer in memory on either
side. OpenSSL can read from and write to a socket: what is sent is encrypted into the kernel's
buffer and what is received is decrypted out of it, in one step each.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import cast

from kvestigate.http.channel import RECORD, Channel, WantRead, WantWrite
from kvestigate.http.rounds import Rounds

_RECORDS = 16
"""Records taken from one connection before others come to their turn."""
_HIGH_WATER = 64 * 1024

_CORK: int = getattr(socket, "TCP_CORK", 0)
"""The option that has the kernel fill packets before it sends them; 0 where there is none."""


class SecureTransport(asyncio.Transport):
    """A connection whose keys are agreed on."""

    def __init__(self, channel: Channel, protocol: asyncio.Protocol, rounds: Rounds) -> None:
        super().__init__({"channel": channel, "peername": channel.peer_address})
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._protocol = protocol
        self._rounds = rounds
        self._undelivered = 0
        """Pieces that were read and wait to be handled."""
        self._descriptor = channel.fileno()
        self._unsent: deque[bytes | memoryview] = deque()
        self._size = 0
        """Bytes of all that is unsent."""
        self._high, self._low = _HIGH_WATER, _HIGH_WATER // 4
        self._choked = False
        self._full = False
        """Whether the kernel has no room for more."""
        self._reading = False
        self._closing = False
        self._lost = False
        protocol.connection_made(self)
        if not self._closing:
            self.resume_reading()

    # Reading.

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.Protocol, protocol)

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

    def _receive(self) -> None:
        if self._undelivered:
            return
        for _ in range(_RECORDS):
            try:
                data = self._channel.read()
            except WantRead:
                return
            except OSError as failure:
                self._lose(failure)
                return
            self._undelivered += 1
            self._rounds.take(self, data)
            # What a record did not fill was followed by nothing, most likely; else there will
            # be another call.
            if len(data) < RECORD:
                return

    def deliver(self, data: bytes) -> None:
        self._undelivered -= 1
        if self._closing:
            return
        if data:
            self._protocol.data_received(data)
        else:
            # The client has said that nothing follows. TLS knows no half-closed connections.
            self._protocol.eof_received()
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
        long = len(data) > RECORD
        if long:
            self._rounds.hurry()
        first = not self._unsent
        if first and long:
            # By the time of its turn, so much would be in no cache any more.
            data = self._send_now(data)
            if not data:
                return
            first = False
        self._unsent.append(bytes(data))
        self._size += len(data)
        if self._size > self._high and not self._choked:
            self._choked = True
            self._protocol.pause_writing()
        if first:
            self._rounds.send(self)

    def _send_now(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """What the kernel has no room for."""
        try:
            sent = self._send(data)
        except WantWrite:
            sent = 0
        except OSError as failure:
            self._lose(failure)
            return b""
        if sent < len(data):
            self._wait_for_room()
        return data[sent:] if sent else data

    def _send(self, data: bytes | bytearray | memoryview) -> int:
        if len(data) <= RECORD or not _CORK:
            return self._channel.write(data)
        # Records are written one by one, and four of them go over loopback in one packet.
        self._channel.setsockopt(socket.IPPROTO_TCP, _CORK, 1)
        try:
            return self._channel.write(data)
        finally:
            self._channel.setsockopt(socket.IPPROTO_TCP, _CORK, 0)

    def flush(self) -> None:
        while self._unsent:
            part = self._unsent[0]
            try:
                # OpenSSL insists on being given again what it could not take before.
                sent = self._send(part)
            except WantWrite:
                self._wait_for_room()
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
        if not self._unsent and not self._lost:
            self._find_room()
            if self._closing:
                self._take_leave()

    def _wait_for_room(self) -> None:
        if not self._full:
            self._full = True
            self._loop.add_writer(self._descriptor, self.flush)

    def _find_room(self) -> None:
        if self._full:
            self._full = False
            self._loop.remove_writer(self._descriptor)

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
            left = self._channel.say_farewell()
        except WantWrite:
            self._loop.add_writer(self._descriptor, self._take_leave)
        except OSError:
            self._lose(None)
        else:
            if left:
                self._lose(None)
            else:
                # A socket that is closed with something unread takes back what it has sent.
                self._loop.remove_writer(self._descriptor)
                self._loop.add_reader(self._descriptor, self._ignore)

    def _ignore(self) -> None:
        try:
            for _ in range(_RECORDS):
                if not self._channel.read():
                    self._lose(None)
                    return
        except WantRead:
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
            self._channel.close()
