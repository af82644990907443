"""Lets a crowd on one event loop take turns, so that others on the loop get their turn too.

A loop runs all that is ready before it looks at its sockets. When thousands of tasks in the
server's own process are ready to call it, whoever calls from outside waits behind all of them,
and again for every packet. So only a few begin in each round of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """First come, first served, so many in each round of the loop."""

    def __init__(self, each_round: int) -> None:
        self._each_round = each_round
        self._left = each_round
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._counting = False
        """Whether the next round is waited for."""

    async def take(self) -> None:
        """Wait until it is the caller's turn."""
        loop = asyncio.get_running_loop()
        if not self._counting:
            self._counting = True
            loop.call_soon(self._next_round, loop)
        if self._left:
            self._left -= 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self, loop: asyncio.AbstractEventLoop) -> None:
        idle = self._left == self._each_round and not self._waiting
        self._left = self._each_round
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # else whoever waited has given up
                turn.set_result(None)
                self._left -= 1
        self._counting = not idle
        if self._counting:
            loop.call_soon(self._next_round, loop)
