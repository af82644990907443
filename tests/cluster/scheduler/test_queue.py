"""When waiting pods are tried, on a clock that stands still."""

from __future__ import annotations

import asyncio

import pytest

from kvestigate.cluster.scheduler.queue import LONGEST_PARKED, Place, PodQueue, Waiting
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.views.meta import Metadata
from kvestigate.kube.views.pods import Pod, PodSpec
from tests.virtual_clock import VirtualClock

FIT = frozenset(("NodeResourcesFit",))


def _pod(name: str, priority: int = 0) -> PodFacts:
    return PodFacts(Pod(Metadata(name=name, uid=name), PodSpec(priority=priority)))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1000.0)


@pytest.fixture
def queue(clock: VirtualClock) -> PodQueue:
    return PodQueue(clock)


async def _next(queue: PodQueue) -> Waiting:
    """The next pod, which has to be there already."""
    async with asyncio.timeout(5):
        return await queue.next()


async def test_the_important_come_first_and_then_the_early(
    queue: PodQueue, clock: VirtualClock
) -> None:
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        queue.add(_pod(name, priority))
        clock.advance(1)
    assert [(await _next(queue)).pod.uid for _ in range(4)] == ["b", "d", "a", "c"]


async def test_a_removed_pod_does_not_come(queue: PodQueue) -> None:
    queue.add(_pod("a"))
    queue.add(_pod("b"))
    queue.remove("a")
    assert (await _next(queue)).pod.uid == "b"
    assert "a" not in queue


@pytest.mark.parametrize(("attempts", "pause"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (9, 10)])
async def test_broken_attempts_back_off(
    queue: PodQueue, clock: VirtualClock, attempts: int, pause: float
) -> None:
    queue.add(_pod("a"))
    waiting = await _next(queue)
    waiting.attempts = attempts
    queue.back_off(waiting)
    again = asyncio.ensure_future(queue.next())
    assert await clock.sleeper() == pytest.approx(clock.now() + pause)
    clock.advance(pause)
    assert (await again).pod.uid == "a"


async def test_a_parked_pod_waits_for_what_concerns_it(queue: PodQueue) -> None:
    queue.add(_pod("a"))
    queue.park(await _next(queue), FIT)
    queue.something_changed(frozenset(("NodePorts",)))
    assert queue.place_of("a") is Place.PARKED
    queue.something_changed(FIT)
    assert queue.place_of("a") is Place.BACKING_OFF


async def test_a_released_pod_need_not_wait_when_nobody_else_does(queue: PodQueue) -> None:
    queue.add(_pod("a"))
    queue.park(await _next(queue), FIT)
    queue.something_changed(None)
    assert (await _next(queue)).attempts == 2


async def test_a_released_pod_lets_fresh_ones_pass(queue: PodQueue, clock: VirtualClock) -> None:
    queue.add(_pod("tried", priority=9))
    queue.park(await _next(queue), FIT)
    queue.something_changed(None)
    queue.add(_pod("fresh"))
    assert (await _next(queue)).pod.uid == "fresh"
    clock.advance(1)
    assert (await _next(queue)).pod.uid == "tried"


async def test_a_parked_pod_is_tried_again_in_the_end(queue: PodQueue, clock: VirtualClock) -> None:
    queue.add(_pod("a"))
    queue.park(await _next(queue), FIT)
    again = asyncio.ensure_future(queue.next())
    assert await clock.sleeper() == clock.now() + LONGEST_PARKED
    clock.advance(LONGEST_PARKED)
    assert (await again).pod.uid == "a"


@pytest.mark.parametrize("asks_anew", [True, False])
async def test_a_parked_pod_that_asks_for_something_else_is_tried_again(
    queue: PodQueue, asks_anew: bool
) -> None:
    queue.add(_pod("a"))
    queue.park(await _next(queue), FIT)
    queue.update(_pod("a", priority=7), retry=asks_anew)
    assert queue.place_of("a") is (Place.BACKING_OFF if asks_anew else Place.PARKED)


async def test_a_pod_that_left_while_in_work_stays_away(queue: PodQueue) -> None:
    queue.add(_pod("a"))
    waiting = await _next(queue)
    queue.remove("a")
    queue.park(waiting, FIT)
    queue.back_off(waiting)
    assert len(queue) == 0
