"""Reading, handling and sending in turns, for all connections of a server.

The interpreter answers a small request in half the time if nothing else has been at work since
the last one: the kernel and OpenSSL take its place in the processor's caches. So whatever has
come is read from every socket first, then all of it is handled, then all answers are sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Protocol

LONGEST = 0.001
"""Seconds that an answer waits for others that could be sent together with it."""
_FEW = 4
"""Requests for which it is not worth the while that answers wait: one of them may take long."""


class Connection(Protocol):
    def deliver(self, data: bytes) -> None:
        """Handle what came; nothing: no more will."""

    def flush(self) -> None:
        """Send what is unsent."""


class Rounds:
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._arrivals: deque[tuple[Connection, bytes]] = deque()
        self._senders: list[Connection] = []
        self._since = 0.0
        """When the first of the senders had something to send."""
        self._handling = False

    def take(self, connection: Connection, data: bytes) -> None:
        """Something came, to be handled when everything has been read."""
        if not self._arrivals:
            self._loop.call_soon(self._handle)
        self._arrivals.append((connection, data))

    def send(self, connection: Connection) -> None:
        """A connection has something unsent."""
        self._senders.append(connection)
        if len(self._senders) == 1:
            self._since = self._clock()
            if not self._handling:
                self._loop.call_soon(self._send)
        elif self._clock() - self._since > LONGEST:
            self._send()

    def hurry(self) -> None:
        """Send what waits: something long is about to be sent, or little is left to handle."""
        if self._senders:
            self._send()

    def _handle(self) -> None:
        self._handling = True
        try:
            while self._arrivals:
                connection, data = self._arrivals.popleft()
                connection.deliver(data)
                if len(self._arrivals) < _FEW:
                    self.hurry()
        finally:
            self._handling = False
            if self._arrivals:  # one has failed, and the others go on
                self._loop.call_soon(self._handle)
            self._send()

    def _send(self) -> None:
        senders, self._senders = self._senders, []
        for connection in senders:
            connection.flush()
