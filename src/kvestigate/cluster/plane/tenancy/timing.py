"""A plane's own time and chance: a virtual clock, and the seed of every random choice in the plane.

An episode of reinforcement learning has to be repeatable: the same actions after the same start
must lead to the same objects, with the same uids, names and timestamps, on every machine and
however fast it is. So a plane can have a virtual clock, which only `step` moves, and a seed.

Where both are kept: in an object of the plane's state that no API serves (`CLOCKS`). Because it is
in the state, whatever carries a state carries them: snapshots, forks, checkpoints, restores, and a
restart of the server. There is no second place that could disagree.

What is drawn (`chance`) depends on the seed and on the number of changes so far, and on nothing
else: there is no generator whose position would have to be stored, or that reads could move. A
restore adds revisions to the plane, and would so change what is drawn next; `Timing.since` counts
the revisions that do not count, and `resumed` sets it, so that a restored plane draws exactly what
it drew the first time. With another seed, the same actions lead to another episode.

While a plane is stepped its clock is ahead of its state, because moving time is not a change by
itself: `Times.moving` has those clocks, and every other plane with virtual time stands still at
what its state says (`Frozen`). Nothing may wait on a frozen clock: it would wait for a step that
may never come.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

import msgspec

from kvestigate.aio.clock import Clock, Timer
from kvestigate.cluster.plane.store.model import ABSENT, Item, Put, ResourceKey
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import PlaneState

CLOCKS: ResourceKey = ("kvestigate.dev", "clocks")
"""The collection of the `Timing` object. No API serves it."""
START = 1767225600.0
"""When virtual time begins, unless told otherwise: the first second of 2026."""

_NAME = "plane"
_UID = "00000000-0000-4000-8000-000000000000"


class Timing(msgspec.Struct, frozen=True, gc=False):
    """The virtual clock and the seed of a plane."""

    seed: int = 0
    now: float = START
    """Unix seconds, moved by steps only."""
    since: int = 0
    """Revisions that do not count: those that were undone, and those that undid them."""


class _Stored(msgspec.Struct):
    timing: Timing


_DECODER = msgspec.json.Decoder(_Stored)


def timing_of(state: PlaneState) -> Timing | None:
    """None: the plane runs on the wall clock."""
    if CLOCKS not in state.collections:  # nearly always, and every request asks
        return None
    item = _item(state)
    return None if item is None else _read(item.data)


@lru_cache(maxsize=1024)
def _read(data: bytes) -> Timing:
    return _DECODER.decode(data).timing


def put(state: PlaneState, timing: Timing) -> Put:
    """The mutation that makes `timing` the plane's."""
    item = _item(state)
    body = b'{"kind":"Clock","apiVersion":"kvestigate.dev/v1","metadata":{"name":"%b",' % (
        _NAME.encode()
    )
    body += b'"resourceVersion":"\0"},"timing":%b}' % msgspec.json.encode(timing)
    expect = ABSENT if item is None else item.revision
    return Put(CLOCKS, "", _NAME, _UID, body, expect)


def resumed(past: PlaneState, tip: PlaneState, seed: int | None) -> Put | None:
    """The mutation after which a plane restored to `past` draws as it did then, or from `seed`.

    None if no mutation is needed.
    """
    timing = timing_of(past)
    if timing is None:
        return None
    seed = timing.seed if seed is None else seed
    if tip.revision == past.revision and seed == timing.seed:
        return None
    return put(tip, Timing(seed, timing.now, timing.since + tip.revision + 1 - past.revision))


def chance(timing: Timing, revision: int) -> Random:
    """The source of uids and names for the write that follows `revision`."""
    return _Chance(f"{timing.seed}/{revision - timing.since}")


class _Chance(Random):
    """Seeded when it is first drawn from: most writes draw nothing, and seeding takes a while."""

    def __init__(self, seed: str) -> None:
        self._late = seed

    def random(self) -> float:
        self._begin()
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        self._begin()
        return super().getrandbits(k)

    def _begin(self) -> None:
        if self._late:
            self.seed(self._late)
            self._late = ""


class Frozen:
    """A clock that stands where a plane's does between two steps."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        raise RuntimeError("nothing can wait for time that only a step moves")

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        raise RuntimeError("nothing can wait for time that only a step moves")

    def routine(self) -> Clock:
        return self


def _item(state: PlaneState) -> Item | None:
    collection = state.collections.get(CLOCKS)
    return None if collection is None else collection.get("", _NAME)


class Times:
    """The clocks of all planes of a server."""

    def __init__(self, wall: Clock) -> None:
        self.wall = wall
        self.moving: dict[str, Clock] = {}
        """Clocks of the planes that are being stepped: ahead of what their states say."""

    def clock(self, plane: Plane | None) -> Clock:
        if plane is None or (timing := timing_of(plane.state)) is None:
            return self.wall
        return self.moving.get(plane.name) or Frozen(timing.now)

    def sources(self, plane: Plane, random: Random) -> tuple[Clock, Random]:
        """The clock, and where uids and names come from: `random` on the wall clock."""
        timing = timing_of(plane.state)
        if timing is None:
            return self.wall, random
        clock = self.moving.get(plane.name) or Frozen(timing.now)
        return clock, chance(timing, plane.tip.revision)
