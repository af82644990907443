from __future__ import annotations

from random import Random

import pytest

from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy.bootstrap import template
from kvestigate.cluster.plane.tenancy.planes import Planes
from kvestigate.cluster.plane.tenancy.stepping import Idle
from kvestigate.cluster.plane.tenancy.timing import START, Timing, chance, put, timing_of
from tests.virtual_clock import VirtualClock


def test_a_plane_is_on_the_wall_clock_unless_it_says_otherwise() -> None:
    assert timing_of(template(0.0)) is None


async def test_time_and_seed_are_kept_by_forks_checkpoints_and_restores() -> None:
    async with Store(MemoryBackend()) as store:
        planes = Planes(store, VirtualClock(5.0))
        plane = await planes.create("a", Timing(seed=3))
        past = await plane.checkpoint("start")
        await plane.write(put(plane.tip, Timing(3, START + 60)))
        (fork,) = await store.fork("a", ["b"])
        (early,) = await store.fork("a", ["c"], past.revision)
        assert timing_of(fork.state) == Timing(3, START + 60)
        assert timing_of(early.state) == Timing(3, START)
        await plane.restore(past)
        assert timing_of(plane.state) == Timing(3, START)
        assert planes.times.clock(plane).now() == START


async def test_each_plane_is_asked_for_its_own_time() -> None:
    async with Store(MemoryBackend()) as store:
        planes = Planes(store, VirtualClock(5.0))
        virtual = await planes.create("a", Timing(now=77.0))
        wall = await planes.create("b")
        times = planes.times
        assert [times.clock(each).now() for each in (virtual, wall, None)] == [77.0, 5.0, 5.0]
        times.moving["a"] = VirtualClock(80.0)
        assert times.clock(virtual).now() == 80.0


@pytest.mark.parametrize(
    ("other", "same"),
    [((1, 10), True), ((1, 11), False), ((2, 10), False)],
    ids=["same seed and revision", "later", "other seed"],
)
def test_what_is_drawn_depends_on_seed_and_revision_only(
    other: tuple[int, int], same: bool
) -> None:
    seed, revision = other
    first = chance(Timing(1), 10).getrandbits(128)
    assert (chance(Timing(seed), revision).getrandbits(128) == first) is same


def test_what_is_drawn_does_not_depend_on_how_it_is_asked_for() -> None:
    letters, late, early = "bcdf", chance(Timing(1), 10), Random("1/10")
    assert late.choices(letters, k=5) == early.choices(letters, k=5)
    assert late.getrandbits(128) == early.getrandbits(128)
    assert late.uniform(1, 2) == early.uniform(1, 2)


async def test_without_workers_nothing_can_be_stepped() -> None:
    async with Store(MemoryBackend()) as store:
        plane = await Planes(store, VirtualClock()).create("a", Timing())
        with pytest.raises(Exception, match="nobody works on it"):
            await Idle().step(plane)
