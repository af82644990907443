"""Whose request is begun next, when several planes have some.

A loop runs all that is ready before it looks at its sockets again. A plane with a hundred busy
clients would so have a hundred requests answered before its neighbour has one. While planes
compete, each begins only a few requests in a round of the loop, and its others wait for the next
rounds: as few as it takes to keep rounds short, and one at least. So does the work on a long
request or answer, a part at a time. A plane that is asked alone pays nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from time import monotonic

from kvestigate.aio.stepped import SteppedLoop

_MEMORY = 5.0
"""Seconds after which a plane that had no more requests does not compete any more."""
_ROUND = 0.0004
"""Seconds that a round should take."""
_LONG, _TOO_LONG = 0.00015, 0.002
"""Seconds of work after which it is time for others: who are there, and who might be."""
_MOST = 16


class _Nothing:
    """An awaitable that is done already."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_NOTHING = _Nothing()


class Fairness:
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._last = ""
        """The plane of the last request."""
        self._until = 0.0
        """Until when another plane than that is expected to have requests; 0: none is."""
        self._share = 1
        """Requests that each plane may begin in a round."""
        self._open = False
        """Whether a round is under way."""
        self._began = 0.0
        """When it began."""
        self._begun: dict[str, int] = {}
        """In this round, by plane."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._resumed = 0.0
        """When what is at work now began or went on, or earlier."""

    def ask(self, plane: str) -> asyncio.Future[None] | None:
        """None if the request may begin now, else a future to wait for."""
        if plane == self._last and not self._until:
            self._resumed = self._clock()
            return None
        if not self._competes(plane) and not self._waiting:
            return None
        loop = asyncio.get_running_loop()
        if isinstance(loop, SteppedLoop):
            return None  # its rounds are of another time, and their order must not depend on ours
        if not self._open:
            self._begin_round(loop)
        begun = self._begun.get(plane, 0)
        if begun < self._share and plane not in self._waiting:
            self._begun[plane] = begun + 1
            return None
        return self._wait(plane, loop)

    async def pause(self, plane: str) -> None:
        """In the middle of long work for a plane: let others have their turn."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, SteppedLoop) or not (self._competes(plane) or self._waiting):
            await asyncio.sleep(0)
        else:
            # Until the next round, not only for a turn of the loop, in which what has come for
            # others meanwhile would be read, but not handled.
            if not self._open:
                self._begin_round(loop)
            await self._wait(plane, loop)
        self._resumed = self._clock()

    def breathe(self, plane: str) -> Awaitable[None]:
        """Between two steps of work for a plane: the same, if the steps so far took long.

        They have taken long sooner if other planes are known to have requests.
        """
        if self._clock() - self._resumed < (_LONG if self._until else _TOO_LONG):
            return _NOTHING
        if isinstance(asyncio.get_running_loop(), SteppedLoop):
            return _NOTHING
        return self.pause(plane)

    def _competes(self, plane: str) -> bool:
        now = self._resumed = self._clock()
        if plane != self._last:
            self._until = now + _MEMORY if self._last else 0.0
            self._last = plane
        elif now > self._until:
            self._until = 0.0
        return bool(self._until)

    def _wait(self, plane: str, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        turn = loop.create_future()
        self._waiting.setdefault(plane, deque()).append(turn)
        return turn

    def _begin_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._open = True
        self._began = self._clock()
        loop.call_soon(self._end_round, loop)

    def _end_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._resumed = self._clock()
        long = self._resumed - self._began > _ROUND
        self._share = max(1, self._share // 2) if long else min(_MOST, self._share * 2)
        self._begun.clear()
        for plane, waiting in list(self._waiting.items()):
            if begun := self._begin(waiting):
                self._begun[plane] = begun
            if not waiting:
                del self._waiting[plane]
        self._open = False
        if self._begun:
            self._begin_round(loop)

    def _begin(self, waiting: deque[asyncio.Future[None]]) -> int:
        """Begin a plane's share of waiting requests. Returns their number."""
        begun = 0
        while waiting and begun < self._share:
            turn = waiting.popleft()
            if not turn.done():  # else whoever asked has gone
                turn.set_result(None)
                begun += 1
        return begun
