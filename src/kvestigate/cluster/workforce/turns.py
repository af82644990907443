"""Crews take turns: one of them works for a moment in each turn of the server's loop.

However many planes are stepped at once, requests of others wait for one of these moments.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

SLICE = 0.0005
"""Seconds that a moment takes: it is over with the first piece of work that ends later."""


class Turns:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        """The server's: who asks may be at work in one of a crew's own."""
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self, work: Callable[[], None]) -> None:
        """Have `work` called, after all who have asked before, outside of any task."""
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        work = self._waiting.popleft()
        if self._waiting:
            self._loop.call_soon(self._next)
        work()
