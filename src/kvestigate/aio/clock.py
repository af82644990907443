"""Where the time comes from: the wall, or a loop that somebody steps (`stepped`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is to come."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """What code that waits or stamps asks for the time."""

    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, when so much time has passed; on the event loop of the caller."""

    def routine(self) -> Clock:
        """The same time for waits that only repeat themselves, which nobody has to wait for."""


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
