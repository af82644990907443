"""A queue of keys to work on: each key once, never by two workers, retried with backoff.

A key added while it waits is merged; added while it is worked on, it comes again when the
worker is done. So a worker always sees the newest state, and never races another one.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from kvestigate.aio.backoff import Backoff
from kvestigate.aio.clock import WALL, Clock, Timer

K = TypeVar("K", bound=Hashable)


class QueueClosed(Exception):
    """The queue was closed and holds nothing more."""


class WorkQueue(Generic[K]):
    """Keys in order of arrival, deduplicated."""

    def __init__(
        self,
        *,
        clock: Clock = WALL,
        first_retry: float = 0.005,
        last_retry: float = 1000.0,
        offered: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._retries = (first_retry, last_retry)
        self._offered = offered
        """Called when a key waits for a worker: whoever has workers on demand gets one."""
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._backoffs: dict[K, Backoff] = {}
        self._due: dict[K, float] = {}
        self._delayed: list[tuple[float, int, K]] = []
        """A heap; entries that `_due` contradicts are stale."""
        self._order = itertools.count()
        self._alarm: tuple[float, Timer] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._closed = False

    def __len__(self) -> int:
        """How many keys wait; those in work are not counted."""
        return len(self._ready)

    def add(self, key: K) -> None:
        """Ask for `key` to be worked on, soon."""
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._offer(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Ask for `key` after a pause; of several pauses the one that ends first counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.now() + seconds
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        heapq.heappush(self._delayed, (due, next(self._order), key))
        self._set_alarm()

    def retry(self, key: K) -> None:
        """Ask for `key` again after a failure: later each time, until `forget`."""
        first, last = self._retries
        backoff = self._backoffs.get(key)
        if backoff is None:
            # No jitter: keys of one process do not storm a server, and runs can be repeated.
            backoff = self._backoffs[key] = Backoff(initial=first, cap=last, jitter=0.0)
        self.add_after(key, backoff.next())

    def forget(self, key: K) -> None:
        """`key` succeeded: its next failure starts with a short pause again."""
        self._backoffs.pop(key, None)

    async def get(self) -> K:
        """The next key, which is in work until `done(key)`."""
        while not self._ready:
            if self._closed:
                raise QueueClosed
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # the wake-up was ours: hand it on
                raise
        return self._take()

    def get_now(self) -> K | None:
        """The next key if one waits, which is in work until `done(key)`."""
        return self._take() if self._ready else None

    def done(self, key: K) -> None:
        """The work on `key` ended; when it was added meanwhile, it queues again."""
        self._processing.discard(key)
        if key in self._dirty:
            self._offer(key)

    @asynccontextmanager
    async def work(self) -> AsyncIterator[K]:
        """The next key for the length of the block."""
        key = await self.get()
        try:
            yield key
        finally:
            self.done(key)

    def close(self) -> None:
        """Take no more keys; workers get what waits, then `QueueClosed`."""
        self._closed = True
        self._delayed.clear()
        self._due.clear()
        if self._alarm is not None:
            self._alarm[1].cancel()
            self._alarm = None
        while self._waiters:
            self._wake()

    def _take(self) -> K:
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def _offer(self, key: K) -> None:
        self._ready.append(key)
        self._wake()
        self._offered()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_alarm(self) -> None:
        """One timer for all delayed keys: that of the first."""
        while self._delayed and self._due.get(self._delayed[0][2]) != self._delayed[0][0]:
            heapq.heappop(self._delayed)
        first = self._delayed[0][0] if self._delayed else None
        if self._alarm is not None:
            if self._alarm[0] == first:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if first is not None:
            pause = max(0.0, first - self._clock.now())
            self._alarm = (first, self._clock.call_later(pause, self._ring))

    def _ring(self) -> None:
        now = self._clock.now()
        self._alarm = None
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        self._set_alarm()
