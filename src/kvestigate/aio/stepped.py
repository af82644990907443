"""An event loop whose time somebody else moves, run in turns inside another loop's callbacks.

All that waits in it (`asyncio.sleep`, `asyncio.timeout`, queues) waits in its time. It has no
I/O and never blocks: whoever owns it calls `turn` while something is ready, then `advance` to
where the next timer is. Two runs that are given the same work do it in the same order.

A loop of its own is also the lightest way to hold what belongs together: what is due next is
known, and `close` ends all of it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import logging
import math
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from time import perf_counter
from typing import Any, TypeVarTuple, Unpack

_Ts = TypeVarTuple("_Ts")
_log = logging.getLogger(__name__)

_GARBAGE = 64
"""Cancelled timers that are not worth a cleaning."""


class SteppedLoop(asyncio.BaseEventLoop):
    """Ready callbacks in their order, timers by their time."""

    def __init__(self, start: float, woken: Callable[[], None] = lambda: None) -> None:
        self._inside = False
        super().__init__()
        self._now = start
        self._woken = woken
        """Called when something became ready while the loop was not running."""
        self._callbacks: deque[asyncio.Handle] = deque()
        self._left = 0
        """How many of them belong to the turn that was begun."""
        self._work = _Timers()
        self._routine = _Timers()
        self._idle: list[tuple[int, int, Callable[[], object]]] = []
        """A heap of what waits for everything else that can be done at this time."""
        self._order = itertools.count()

    # -- what the owner does -----------------------------------------------------------------

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Be the running loop for the length of the block, in place of the one around it."""
        outer = asyncio._get_running_loop()
        hooks = sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(None, None)  # the outer loop must not finalise what is ours
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(outer)

    def turn(self, stop: float = math.inf) -> int:
        """Run what is ready now, but not what that makes ready; how much it was.

        When `time.perf_counter` reaches `stop` the turn is left `midway`; the next call goes on
        with it. So what runs in which order never depends on how fast it runs.
        """
        if not self._left:
            for timers in (self._work, self._routine):
                self._callbacks.extend(timers.due(self._now))
            self._left = len(self._callbacks)
        count = 0
        while self._left:
            self._left -= 1
            count += 1
            handle = self._callbacks.popleft()
            if not handle._cancelled:
                handle._run()
            if perf_counter() >= stop:
                break
        return count

    @property
    def midway(self) -> bool:
        """Whether a turn was begun and not yet ended."""
        return self._left > 0

    def turn_idle(self) -> bool:
        """Run the first idle callback; whether there was one."""
        if not self._idle:
            return False
        heapq.heappop(self._idle)[2]()
        return True

    @property
    def ready(self) -> bool:
        """Whether there is something to run without any time passing."""
        if self._callbacks or self._idle:
            return True
        return (self.next_timer() or self._now + 1) <= self._now

    def advance(self, to: float) -> None:
        """Let time pass; it never runs backwards."""
        self._now = max(self._now, to)

    def next_timer(self) -> float | None:
        """When the next timer is due."""
        times = [at for at in (self._work.first(), self._routine.first()) if at is not None]
        return min(times, default=None)

    def next_work(self) -> float | None:
        """When the next timer is due that is not routine."""
        return self._work.first()

    def end(self) -> None:
        """Cancel all tasks; time passes only as far as their cleanup waits for it."""
        self._idle.clear()
        with self.entered():
            tasks = asyncio.all_tasks(self)
            for task in tasks:
                task.cancel()
            while self._callbacks or not all(task.done() for task in tasks):
                if not self.turn():
                    at = self.next_timer()
                    if at is None:
                        break
                    self.advance(at)
        self._work.clear()
        self._routine.clear()
        self.close()

    # -- what those who run in it ask for ----------------------------------------------------

    def time(self) -> float:
        return self._now

    def is_running(self) -> bool:
        return self._inside

    def call_soon(
        self,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = _Soon(callback, args, self, context)
        self._callbacks.append(handle)
        if not self._inside:
            self._woken()
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._work.add(handle)
        return handle

    def call_when_idle(self, rank: int, callback: Callable[[], object]) -> None:
        """Call it when nothing else is left to do without time passing, the lowest rank first.

        What is put together from what others do is worth doing once they are done.
        """
        heapq.heappush(self._idle, (rank, next(self._order), callback))
        if not self._inside:
            self._woken()

    def call_as_routine(
        self, delay: float, callback: Callable[[Unpack[_Ts]], object], *args: *_Ts
    ) -> asyncio.TimerHandle:
        """As `call_later`, for something that only recurs: `next_work` ignores it."""
        handle = asyncio.TimerHandle(self._now + delay, callback, args, self)
        self._routine.add(handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._work.note_cancelled()

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        raise RuntimeError("a loop that is stepped has no threads to hear from")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        _log.error("%s", context.get("message"), exc_info=context.get("exception"))


class _Soon(asyncio.Handle):
    """A handle that skips asking whether the loop is in debug mode: it never is."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Timers:
    """Timers by their time, those of one time in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = itertools.count()
        self._cancelled = 0

    def add(self, handle: asyncio.TimerHandle) -> None:
        heapq.heappush(self._heap, (handle.when(), next(self._order), handle))

    def first(self) -> float | None:
        while self._heap and self._heap[0][2].cancelled():
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[asyncio.TimerHandle]:
        while (at := self.first()) is not None and at <= now:
            yield heapq.heappop(self._heap)[2]

    def note_cancelled(self) -> None:
        self._cancelled += 1  # or a little less: one that rang may be cancelled too
        if self._cancelled > _GARBAGE and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].cancelled()]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def clear(self) -> None:
        self._heap.clear()


class LoopClock:
    """The time of a stepped loop."""

    def __init__(self, loop: SteppedLoop, *, routine: bool = False) -> None:
        self._loop = loop
        self._routine = routine

    def now(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0 or not self._routine:
            await asyncio.sleep(seconds)
            return
        woken = self._loop.create_future()
        timer = self._loop.call_as_routine(seconds, _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        if self._routine:
            return self._loop.call_as_routine(seconds, callback)
        return self._loop.call_later(seconds, callback)

    def routine(self) -> LoopClock:
        return LoopClock(self._loop, routine=True)


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
