"""Accepting TLS connections, for servers: see `secure` for what is spoken afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from kvestigate.http.channel import Channel, ServerContext, TlsError, WantRead, WantWrite, new_place
from kvestigate.http.rounds import Rounds
from kvestigate.http.secure import SecureTransport

_log = logging.getLogger(__name__)

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_BREATHER = 1.0
"""Seconds until a system that could not open another socket is asked for one again."""
_READ_BYTES = 64 * 1024
_ACCEPTED = 8
"""Connections that are accepted in one turn of the loop."""
_NOT_PLAIN = (
    b"HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\n\r\n"
    b"Client sent an HTTP request to an HTTPS server.\n"
)


class SecureListener:
    """Accepts connections and agrees on keys with who is there."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        context: ServerContext,
        protocol: Callable[[], asyncio.Protocol],
        *,
        handshake_timeout: float,
    ) -> None:
        self.sockets: Sequence[socket.socket] = sockets
        self.context = context
        self.protocol = protocol
        self.handshake_timeout = handshake_timeout
        self.newcomers: set[_Handshake] = set()
        self._next: deque[_Handshake] = deque()
        """Those that have said something."""
        self.rounds = Rounds()
        self.place = new_place()
        self._loop = asyncio.get_running_loop()
        self._breathers: dict[socket.socket, asyncio.TimerHandle] = {}
        for listening in sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def close(self) -> None:
        for breather in self._breathers.values():
            breather.cancel()
        closed, self.sockets = self.sockets, ()
        for listening in closed:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        for newcomer in list(self.newcomers):
            newcomer.end()

    def _accept(self, listening: socket.socket) -> None:
        try:
            for _ in range(_ACCEPTED):
                accepted = listening.accept()[0]
                accepted.setblocking(False)
                _Handshake(self, accepted)
        except (BlockingIOError, InterruptedError, ConnectionError):
            pass
        except OSError as failure:
            if failure.errno not in _EXHAUSTED:
                raise
            _log.error("no connection can be accepted: %s", failure)
            self._loop.remove_reader(listening.fileno())
            self._breathers[listening] = self._loop.call_later(_BREATHER, self._again, listening)

    def schedule(self, newcomer: _Handshake) -> None:
        """Go on with a handshake when it is its turn.

        Each takes half a millisecond, and many may come at once: there is one in a turn of the
        loop, so that those who are connected have to wait for one at most.
        """
        if not self._next:
            self._loop.call_soon(self._go_on)
        self._next.append(newcomer)

    def _go_on(self) -> None:
        newcomer = self._next.popleft()
        if self._next:
            self._loop.call_soon(self._go_on)
        newcomer.go_on()

    def _again(self, listening: socket.socket) -> None:
        del self._breathers[listening]
        self._loop.add_reader(listening.fileno(), self._accept, listening)


async def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listening sockets: one for each address of the host."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    bound: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, *_, address in found):
            listening = socket.create_server(
                cast("tuple[str, int]", address), family=family, backlog=backlog
            )
            listening.setblocking(False)
            bound.append(listening)
    except OSError:
        for listening in bound:
            listening.close()
        raise
    return bound


class _Handshake:
    """A client that has connected and has no keys yet."""

    def __init__(self, listener: SecureListener, accepted: socket.socket) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._channel = Channel(listener.context, accepted, listener.place)
        listener.newcomers.add(self)
        self._timer = self._loop.call_later(listener.handshake_timeout, self.end)
        self._loop.add_reader(self._channel.fileno(), self._wait)

    def _wait(self) -> None:
        """For its turn, without being told again that there is something to do."""
        self._loop.remove_reader(self._channel.fileno())
        self._loop.remove_writer(self._channel.fileno())
        self._listener.schedule(self)

    def go_on(self) -> None:
        if self not in self._listener.newcomers:
            return  # it took too long, or the server stops
        descriptor = self._channel.fileno()
        try:
            self._channel.shake_hands()
        except WantRead:
            self._loop.add_reader(descriptor, self._wait)
        except WantWrite:
            self._loop.add_writer(descriptor, self._wait)
        except OSError as failure:
            _log.debug("a TLS handshake failed: %s", failure)
            if isinstance(failure, TlsError) and failure.args == ("http request",):
                self._explain()
            self.end()
        else:
            self._leave()
            SecureTransport(self._channel, self._listener.protocol(), self._listener.rounds)

    def _explain(self) -> None:
        """Tell a client that speaks plain HTTP so, in plain HTTP."""
        with contextlib.suppress(OSError):
            # What is left unread when a socket is closed takes the answer with it.
            os.read(self._channel.fileno(), _READ_BYTES)
            os.write(self._channel.fileno(), _NOT_PLAIN)

    def end(self) -> None:
        self._leave()
        self._channel.close()

    def _leave(self) -> None:
        self._timer.cancel()
        self._loop.remove_reader(self._channel.fileno())
        self._loop.remove_writer(self._channel.fileno())
        self._listener.newcomers.discard(self)
