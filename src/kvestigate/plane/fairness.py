"""Whose request is begun next, when several planes have some.

A loop runs all that is ready before it looks at its sockets again. A plane with a hundred busy
clients would so have a hundred requests answered before its neighbour has one. While planes
compete, each begins one request in a round of the loop, and its others wait for the next rounds.
A plane that is asked alone pays nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic

from kvestigate.aio.stepped import SteppedLoop

_MEMORY = 5.0
"""Seconds after which a plane that had no more requests does not compete any more."""


class Fairness:
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._last = ""
        """The plane of the last request."""
        self._until = 0.0
        """Until when another plane than that is expected to have requests; 0: none is."""
        self._begun: set[str] = set()
        """Planes that have begun a request in this round."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def ask(self, plane: str) -> asyncio.Future[None] | None:
        """None: begin. Else begin when the future is done."""
        if plane == self._last:
            if not self._until:
                return None
            if self._clock() > self._until:
                self._until = 0.0
        else:
            self._until = self._clock() + _MEMORY if self._last else 0.0
            self._last = plane
        if not self._until and not self._waiting:
            return None
        loop = asyncio.get_running_loop()
        if isinstance(loop, SteppedLoop):
            return None  # its rounds are of another time, and their order must not depend on ours
        if not self._begun:
            loop.call_soon(self._next_round, loop)
        if plane not in self._begun:
            self._begun.add(plane)
            return None
        turn = loop.create_future()
        self._waiting.setdefault(plane, deque()).append(turn)
        return turn

    def _next_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun.clear()
        for plane, waiting in list(self._waiting.items()):
            if self._begin_one(waiting):
                self._begun.add(plane)
            if not waiting:
                del self._waiting[plane]
        if self._begun:
            loop.call_soon(self._next_round, loop)

    def _begin_one(self, waiting: deque[asyncio.Future[None]]) -> bool:
        while waiting:
            turn = waiting.popleft()
            if not turn.done():  # else whoever asked has gone
                turn.set_result(None)
                return True
        return False
