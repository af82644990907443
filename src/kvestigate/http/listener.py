"""Accepting TLS connections, for servers.

The event loop could accept them itself (`loop.create_server(ssl=...)`). Three promises to clients
are why we do it here and hand each connection to the loop only once its client has spoken:

- A client that speaks plain HTTP to an HTTPS port is answered in plain HTTP, as kube-apiserver
  does. Only the first bytes tell, and they must still be in the socket when TLS begins, so they
  are looked at without being taken out (MSG_PEEK).
- A handshake takes half a millisecond of CPU. After a network outage hundreds of clients come
  back at once; one handshake is begun in each turn of the loop, so that clients that are
  connected already wait for one at most.
- A system that is out of file descriptors is asked again a second later, and says so in the log.

A client that connects and says nothing costs one socket and one timer until the handshake
timeout ends it. From the handshake on everything is the loop's own TLS, on `ssl` of the standard
library: transports of our own that had OpenSSL write into the socket, and another OpenSSL, were
used before and were up to a fifth faster (docs/decisions/0014).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

_log = logging.getLogger(__name__)

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RETRY_SECONDS = 1.0
"""Until a system that could not open another socket is asked for one again."""
_ACCEPTED = 8
"""Connections that are accepted in one turn of the loop."""
_READ_BYTES = 64 * 1024
_PLAIN_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"PATC", b"DELE", b"OPTI")
"""How a request without TLS begins."""
_NOT_PLAIN = (
    b"HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\n\r\n"
    b"Client sent an HTTP request to an HTTPS server.\n"
)


class SecureListener:
    """Accepts connections and begins their handshakes."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        context: ssl.SSLContext,
        protocol: Callable[[], asyncio.BaseProtocol],
        *,
        handshake_timeout: float,
        shutdown_timeout: float,
    ) -> None:
        self.sockets: Sequence[socket.socket] = sockets
        self._context = context
        self._protocol = protocol
        self._handshake_timeout = handshake_timeout
        self._shutdown_timeout = shutdown_timeout
        self._loop = asyncio.get_running_loop()
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        """Connections without a handshake, and when each is cut off."""
        self._next: deque[socket.socket] = deque()
        """Those of them whose client has spoken."""
        self._handshakes: set[asyncio.Task[None]] = set()
        self._retries: dict[socket.socket, asyncio.TimerHandle] = {}
        for listening in sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def close(self) -> None:
        for retry in self._retries.values():
            retry.cancel()
        closed, self.sockets = self.sockets, ()
        for listening in closed:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        for accepted in list(self._silent):
            self._cut_off(accepted)
        for handshake in self._handshakes:
            handshake.cancel()

    def _accept(self, listening: socket.socket) -> None:
        try:
            for _ in range(_ACCEPTED):
                accepted = listening.accept()[0]
                accepted.setblocking(False)
                self._silent[accepted] = self._loop.call_later(
                    self._handshake_timeout, self._cut_off, accepted
                )
                self._loop.add_reader(accepted.fileno(), self._queue, accepted)
        except (BlockingIOError, InterruptedError, ConnectionError):
            pass
        except OSError as failure:
            if failure.errno not in _EXHAUSTED:
                raise
            _log.error("no connection can be accepted: %s", failure)
            self._loop.remove_reader(listening.fileno())
            self._retries[listening] = self._loop.call_later(
                _RETRY_SECONDS, self._accept_again, listening
            )

    def _accept_again(self, listening: socket.socket) -> None:
        del self._retries[listening]
        self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _cut_off(self, accepted: socket.socket) -> None:
        self._take(accepted)
        accepted.close()

    def _take(self, accepted: socket.socket) -> None:
        self._silent.pop(accepted).cancel()
        self._loop.remove_reader(accepted.fileno())

    def _queue(self, accepted: socket.socket) -> None:
        """A client has spoken, or left: see to it when it is its turn."""
        self._loop.remove_reader(accepted.fileno())
        if not self._next:
            self._loop.call_soon(self._see_to_next)
        self._next.append(accepted)

    def _see_to_next(self) -> None:
        accepted = self._next.popleft()
        if self._next:
            self._loop.call_soon(self._see_to_next)
        if accepted not in self._silent:
            return  # cut off while it waited for its turn
        try:
            first = accepted.recv(4, socket.MSG_PEEK)
            if first in _PLAIN_HTTP:
                # Input that is unread when a socket is closed takes the answer with it.
                accepted.recv(_READ_BYTES)
                accepted.send(_NOT_PLAIN)
        except OSError:
            first = b""
        if not first or first in _PLAIN_HTTP:
            self._cut_off(accepted)
            return
        self._take(accepted)
        handshake = self._loop.create_task(self._shake_hands(accepted))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._protocol,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_timeout,
                ssl_shutdown_timeout=self._shutdown_timeout,
            )
        except OSError as failure:
            _log.debug("a TLS handshake failed: %s", failure)


async def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listening sockets: one for each address of the host."""
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    bound: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, *_, address in infos):
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
