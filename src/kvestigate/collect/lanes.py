"""A bounded way to each sink, so that sinks fail alone.

A slow sink slows the stream down: lines wait for room. A sink that fails is tried again with
growing pauses, and meanwhile the stream goes on: when its lane is full, the oldest lines are
dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from kvestigate.aio.backoff import Backoff
from kvestigate.aio.clock import WALL, Clock
from kvestigate.collect.sinks.interface import Rejected, Sink, Unavailable

Warn = Callable[[str], None]

CAPACITY = 10_000
BATCH = 1_000


class Lane:
    """Lines on their way to one sink. Counters only grow."""

    def __init__(
        self,
        sink: Sink,
        *,
        settled: Callable[[], None],
        warn: Warn,
        capacity: int = CAPACITY,
        batch: int = BATCH,
        clock: Clock = WALL,
    ) -> None:
        """`settled` is called whenever `delivered` has grown."""
        self.sink = sink
        self.sent = 0
        self.dropped = 0
        """Lost because the sink failed for too long."""
        self.rejected = 0
        """Lost because the sink refused them for good."""
        self.failing = False
        self.empty = asyncio.Event()
        self.empty.set()
        self._settled = settled
        self._warn = warn
        self._capacity = capacity
        self._batch = batch
        self._clock = clock
        self._backoff = Backoff(initial=0.5, cap=30.0, jitter=0.5)
        self._queue: deque[tuple[int, bytes]] = deque()
        self._flying: list[tuple[int, bytes]] = []
        self._last = 0
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._queue) + len(self._flying)

    @property
    def delivered(self) -> int:
        """Every line up to this number has reached the sink or is lost for good."""
        waiting = self._flying or self._queue
        return waiting[0][0] - 1 if waiting else self._last

    async def put(self, number: int, line: bytes) -> None:
        """Take a line; numbers grow from call to call."""
        while len(self._queue) >= self._capacity and not self.failing:
            self._room.clear()
            await self._room.wait()
        self._queue.append((number, line))
        self._last = number
        self._trim()
        self.empty.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Send what comes, until cancelled."""
        while True:
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            count = min(self._batch, len(self._queue))
            self._flying = [self._queue.popleft() for _ in range(count)]
            try:
                await self.sink.send([line for _, line in self._flying])
            except Unavailable as error:
                await self._pause(error)
                continue
            except Rejected as error:
                self.rejected += count
                self._warn(f"{self.sink.name}: {count} events were rejected: {error.message}")
            else:
                self.sent += count
            self._done()

    def _done(self) -> None:
        if self.failing:
            self._warn(f"{self.sink.name}: works again; {self.dropped} events were dropped so far")
        self.failing = False
        self._backoff.reset()
        self._flying = []
        self._room.set()
        if not self._queue:
            self.empty.set()
        self._settled()

    async def _pause(self, error: Unavailable) -> None:
        if not self.failing:
            self._warn(f"{self.sink.name}: {error.message}; retrying until the sink works")
        self.failing = True
        self._queue.extendleft(reversed(self._flying))
        self._flying = []
        self._trim()
        self._room.set()
        await self._clock.sleep(self._backoff.next())

    def _trim(self) -> None:
        if len(self._queue) <= self._capacity:
            return
        while len(self._queue) > self._capacity:
            self._queue.popleft()
            self.dropped += 1
        self._settled()
