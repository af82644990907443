"""Pods that wait for a node: the important first, and those that fit nowhere not too often.

A pod is ready, or backs off, or is parked until something changes that its rejection hung on.
One that backs off because it fit nowhere is taken early when nothing else is ready.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from dataclasses import dataclass, field
from enum import Enum

from kvestigate.aio.clock import Clock, Timer
from kvestigate.kube.feasibility.pods import PodFacts

FIRST_BACKOFF, LAST_BACKOFF = 1.0, 10.0
"""Seconds that a pod waits after its first and after many failures."""
LONGEST_PARKED = 300.0
"""Seconds after which a parked pod is tried again, whatever has happened."""


class Place(Enum):
    """Where a waiting pod is."""

    READY = "ready"
    BACKING_OFF = "backing off"
    PARKED = "parked"
    IN_WORK = "in work"


@dataclass(slots=True, eq=False)
class Waiting:
    """One pod of the queue."""

    pod: PodFacts
    since: float
    place: Place = Place.READY
    attempts: int = 0
    failed: bool = False
    """The last attempt broke, rather than found no node: then the backoff is kept to."""
    until: float = 0.0
    """When its backoff ends."""
    parked_at: float = 0.0
    rejected_by: frozenset[str] = frozenset()
    ticket: int = field(default=0)
    """Tells its entry in a heap from older ones of the same pod."""


class PodQueue:
    """Waiting pods by uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, Waiting] = {}
        self._ready: list[tuple[int, float, int, str]] = []
        self._backing_off: list[tuple[float, int, str]] = []
        self._parked: dict[str, Waiting] = {}
        self._tickets = itertools.count(1)
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def place_of(self, uid: str) -> Place | None:
        waiting = self._pods.get(uid)
        return waiting.place if waiting else None

    def add(self, pod: PodFacts) -> None:
        """A pod that needs a node."""
        waiting = self._pods[pod.uid] = Waiting(pod, self._clock.now())
        self._make_ready(waiting)

    def update(self, pod: PodFacts, *, retry: bool) -> None:
        """A new state of a waiting pod; with `retry` it may fit now."""
        waiting = self._pods[pod.uid]
        waiting.pod = pod
        if retry and waiting.place is Place.PARKED:
            self._release(waiting)

    def remove(self, uid: str) -> None:
        """It has a node, or is gone."""
        self._pods.pop(uid, None)
        self._parked.pop(uid, None)

    def park(self, waiting: Waiting, rejected_by: frozenset[str]) -> None:
        """The pod fits nowhere: it waits for a change."""
        if self._pods.get(waiting.pod.uid) is waiting:
            waiting.failed = False
            waiting.rejected_by = rejected_by
            waiting.place = Place.PARKED
            waiting.parked_at = self._clock.now()
            waiting.until = waiting.parked_at + _backoff(waiting.attempts)
            self._parked[waiting.pod.uid] = waiting
            self._news.set()  # the next time to wake up may have come nearer

    def back_off(self, waiting: Waiting) -> None:
        """The attempt failed: try again after a pause."""
        if self._pods.get(waiting.pod.uid) is waiting:
            waiting.failed = True
            waiting.until = self._clock.now() + _backoff(waiting.attempts)
            self._delay(waiting)

    def something_changed(self, plugins: frozenset[str] | None) -> None:
        """Try parked pods again that one of these plugins rejected; None: all of them."""
        for waiting in list(self._parked.values()):
            if plugins is None or not plugins.isdisjoint(waiting.rejected_by):
                self._release(waiting)

    async def next(self) -> Waiting:
        """The pod to place next; it is in work until parked, backed off or removed."""
        while True:
            self._flush()
            waiting = self._pop_ready() or self._pop_backing_off()
            if waiting is not None:
                waiting.place = Place.IN_WORK
                waiting.attempts += 1
                return waiting
            await self._wait()

    # -- parts -----------------------------------------------------------------------------------

    def _make_ready(self, waiting: Waiting) -> None:
        waiting.place = Place.READY
        waiting.ticket = next(self._tickets)
        self._parked.pop(waiting.pod.uid, None)
        entry = (-waiting.pod.priority, waiting.since, waiting.ticket, waiting.pod.uid)
        heapq.heappush(self._ready, entry)
        self._news.set()

    def _delay(self, waiting: Waiting) -> None:
        waiting.place = Place.BACKING_OFF
        waiting.ticket = next(self._tickets)
        self._parked.pop(waiting.pod.uid, None)
        heapq.heappush(self._backing_off, (waiting.until, waiting.ticket, waiting.pod.uid))
        self._news.set()

    def _release(self, waiting: Waiting) -> None:
        if waiting.until > self._clock.now():
            self._delay(waiting)
        else:
            self._make_ready(waiting)

    def _flush(self) -> None:
        now = self._clock.now()
        while self._backing_off and self._backing_off[0][0] <= now:
            _, ticket, uid = heapq.heappop(self._backing_off)
            waiting = self._current(uid, ticket)
            if waiting is not None:
                self._make_ready(waiting)
        for waiting in list(self._parked.values()):
            if waiting.parked_at + LONGEST_PARKED > now:
                break  # they are in the order in which they were parked
            self._make_ready(waiting)

    def _pop_ready(self) -> Waiting | None:
        while self._ready:
            _, _, ticket, uid = heapq.heappop(self._ready)
            waiting = self._current(uid, ticket)
            if waiting is not None:
                return waiting
        return None

    def _pop_backing_off(self) -> Waiting | None:
        kept = []
        due = None
        while self._backing_off and due is None:
            entry = heapq.heappop(self._backing_off)
            waiting = self._current(entry[2], entry[1])
            if waiting is None:
                continue
            if waiting.failed:
                kept.append(entry)
            else:
                due = waiting
        for entry in kept:
            heapq.heappush(self._backing_off, entry)
        return due

    def _current(self, uid: str, ticket: int) -> Waiting | None:
        waiting = self._pods.get(uid)
        return waiting if waiting is not None and waiting.ticket == ticket else None

    async def _wait(self) -> None:
        self._news.clear()
        timers = []
        if self._backing_off:
            timers.append(self._alarm(self._clock, self._backing_off[0][0]))
        if self._parked:
            longest = next(iter(self._parked.values())).parked_at + LONGEST_PARKED
            timers.append(self._alarm(self._clock.routine(), longest))
        try:
            await self._news.wait()
        finally:
            for timer in timers:
                timer.cancel()

    def _alarm(self, clock: Clock, at: float) -> Timer:
        return clock.call_later(max(0.0, at - clock.now()), self._news.set)


def _backoff(attempts: int) -> float:
    return min(LAST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(max(0, attempts - 1), 16))
