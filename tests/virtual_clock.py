"""Time for tests: it moves when they say so."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable

from kvestigate.aio.clock import Clock, Timer


class VirtualClock:
    """Time that stands still until `advance` moves it, waking sleepers in order."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._arrival = asyncio.Event()

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        await self._sleeper(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        woken = self._sleeper(seconds)
        woken.add_done_callback(lambda _: None if woken.cancelled() else callback())
        return _Call(woken)

    def routine(self) -> Clock:
        return self

    def _sleeper(self, seconds: float) -> asyncio.Future[None]:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        self._arrival.set()
        return woken

    @property
    def next_wake(self) -> float | None:
        """When the earliest sleeper wants to wake, or None when nobody sleeps."""
        self._forget_cancelled()
        return self._sleepers[0][0] if self._sleepers else None

    async def sleeper(self) -> float:
        """Wait until somebody sleeps; the time of the earliest wake-up."""
        while (wake := self.next_wake) is None:
            self._arrival.clear()
            await self._arrival.wait()
        return wake

    def advance(self, seconds: float) -> None:
        """Move time forward, waking everybody whose time has come."""
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)

    def _forget_cancelled(self) -> None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)


class _Call:
    def __init__(self, woken: asyncio.Future[None]) -> None:
        self._woken = woken

    def cancel(self) -> None:
        self._woken.cancel()
