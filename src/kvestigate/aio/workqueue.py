"""A queue of keys to work on: each key once, never by two workers, retried with backoff.

A key added while it waits is merged; added while it is worked on, it comes again when the
worker is done. So a worker always sees the newest state, and never races another one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from kvestigate.aio.backoff import Backoff
from kvestigate.aio.clock import WALL, Clock

K = TypeVar("K", bound=Hashable)


class QueueClosed(Exception):
    """The queue was closed and holds nothing more."""


class WorkQueue(Generic[K]):
    """Keys in order of arrival, deduplicated."""

    def __init__(
        self, *, clock: Clock = WALL, first_retry: float = 0.005, last_retry: float = 1000.0
    ) -> None:
        self._clock = clock
        self._retries = (first_retry, last_retry)
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._backoffs: dict[K, Backoff] = {}
        self._delayed: dict[K, tuple[float, asyncio.Task[None]]] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
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
        if (waiting := self._delayed.get(key)) is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
        self._delayed[key] = (due, asyncio.ensure_future(self._add_later(key, seconds)))

    def retry(self, key: K) -> None:
        """Ask for `key` again after a failure: later each time, until `forget`."""
        first, last = self._retries
        backoff = self._backoffs.get(key)
        if backoff is None:
            backoff = self._backoffs[key] = Backoff(initial=first, cap=last, jitter=0.1)
        self.add_after(key, backoff.next())

    def forget(self, key: K) -> None:
        """`key` succeeded: its next failure starts with a short pause again."""
        self._backoffs.pop(key, None)

    def retries(self, key: K) -> int:
        backoff = self._backoffs.get(key)
        return backoff.attempts if backoff else 0

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
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

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
        for _, task in self._delayed.values():
            task.cancel()
        self._delayed.clear()
        while self._waiters:
            self._wake()

    def _offer(self, key: K) -> None:
        self._ready.append(key)
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _add_later(self, key: K, seconds: float) -> None:
        await self._clock.sleep(seconds)
        del self._delayed[key]
        self.add(key)
