"""Events are told once, then counted, then combined, then held back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kvestigate.client.recorder import EVENTS, News, Recorder
from tests.bed import Bed, plane
from tests.cluster.controllers.builders import NOW
from tests.virtual_clock import VirtualClock

ABOUT = (("kind", "Pod"), ("namespace", "default"), ("name", "p"), ("uid", "1"))


def news(message: str = "hello", reason: str = "Greeting", version: str = "1") -> News:
    about = (*ABOUT, ("resourceVersion", version))
    return News(about, "tester", "Normal", reason, message)


class Desk:
    """A recorder at work."""

    def __init__(self, bed: Bed, recorder: Recorder, clock: VirtualClock) -> None:
        self.bed, self.recorder, self.clock = bed, recorder, clock

    async def tell(self, *told: News) -> list[tuple[str, int]]:
        """(message, count) of all events, after these are written."""
        for each in told:
            self.recorder.tell(each)
        await self.recorder.drain()
        found = await self.bed.all("events")
        return sorted((each["message"], each["count"]) for each in found.values())


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    clock = VirtualClock(NOW)
    async with plane(clock) as api, asyncio.TaskGroup() as tasks:
        recorder = Recorder(api, clock)
        running = tasks.create_task(recorder.run())
        yield Desk(Bed(api), recorder, clock)
        running.cancel()


async def test_the_same_news_are_counted(desk: Desk) -> None:
    told = [news(version=str(number)) for number in range(3)]
    assert await desk.tell(*told, news("bye")) == [("bye", 1), ("hello", 3)]


async def test_an_event_says_when_it_was_first_and_last(desk: Desk) -> None:
    await desk.tell(news())
    desk.clock.advance(60)
    await desk.tell(news())
    (event,) = (await desk.bed.all("events")).values()
    assert event["firstTimestamp"] == "2026-03-01T12:00:00Z"
    assert event["lastTimestamp"] == "2026-03-01T12:01:00Z"
    assert event["involvedObject"]["name"] == "p"
    assert event["source"] == {"component": "tester"}


async def test_many_similar_ones_are_combined(desk: Desk) -> None:
    found = await desk.tell(*(news(f"number {number}") for number in range(14)))
    combined = [count for message, count in found if message.startswith("(combined")]
    assert combined == [5]
    assert len(found) == 10


async def test_a_flood_is_held_back(desk: Desk) -> None:
    found = await desk.tell(*[news()] * 40)
    assert found == [("hello", 25)]
    desk.clock.advance(300)
    assert await desk.tell(news(), news()) == [("hello", 26)]


async def test_an_expired_event_is_told_anew(desk: Desk) -> None:
    await desk.tell(news())
    (name,) = await desk.bed.all("events")
    await desk.bed.api.delete(EVENTS, name)
    assert await desk.tell(news()) == [("hello", 1)]


async def test_what_is_told_in_one_instant_is_all_written(desk: Desk) -> None:
    """Where a clock stands still, and an earlier recorder told something at the same time."""
    again = Recorder(desk.bed.api, desk.clock)
    running = asyncio.ensure_future(again.run())
    again.tell(news("from the other"))
    await again.drain()
    running.cancel()
    found = await desk.tell(news("one"), news("two", reason="Second"))
    assert found == [("from the other", 1), ("one", 1), ("two", 1)]


async def test_an_event_says_where_its_source_runs(desk: Desk) -> None:
    await desk.tell(News(ABOUT, "kubelet", "Warning", "BackOff", "again", host="node-1"))
    (event,) = (await desk.bed.all("events")).values()
    assert event["source"] == {"component": "kubelet", "host": "node-1"}
    assert event["reportingInstance"] == "node-1"
