"""Where the time comes from: the wall, or a loop that somebody steps (`stepped`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The source of time for code that waits or writes timestamps."""

    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, when so much time has passed; on the event loop of the caller."""

    def routine(self) -> Clock:
        """The same clock for waits that only recur: they do not keep a plane from being idle."""


class WallClock:
    """The machine's own time."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)

    def routine(self) -> Clock:
        return self


WALL = WallClock()
