"""Telling viewers that something changed, and no more often than they can look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from kvestigate.aio.clock import Clock

_ALIVE = 15.0
"""Seconds after which a silent stream shows that it is still there."""
_APART = 1.0
"""Seconds between two refreshes of a page."""


class Ticker:
    """Counts changes; whoever has seen some waits for the next."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()

    def tick(self) -> None:
        self.count += 1
        self._next.set()

    async def after(self, seen: int) -> int:
        """The count as soon as it is another than `seen`."""
        while self.count == seen:
            if self._next.is_set():  # of an earlier change, which all waiters were told of
                self._next = asyncio.Event()
            await self._next.wait()
        return self.count


async def refreshes(ticker: Ticker, clock: Clock) -> AsyncGenerator[bytes, None]:
    """Server-sent events: `changed` after every change, at most one a second."""
    seen = ticker.count
    yield b"retry: 2000\n\n"
    while True:
        try:
            async with asyncio.timeout(_ALIVE):
                seen = await ticker.after(seen)
        except TimeoutError:
            yield b": nothing changed\n\n"
            continue
        yield b"event: changed\ndata: now\n\n"
        await clock.sleep(_APART)


async def until(
    closing: asyncio.Event, events: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """The events until `closing` is set: an open page must not keep a console from ending."""
    ended = asyncio.ensure_future(closing.wait())
    coming: asyncio.Future[bytes] | None = None
    try:
        while not closing.is_set():
            coming = asyncio.ensure_future(anext(events))
            await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                yield coming.result()
    except StopAsyncIteration:
        return
    finally:
        waiting = [future for future in (coming, ended) if future is not None]
        for future in waiting:
            future.cancel()
        await asyncio.wait(waiting)
        await events.aclose()
