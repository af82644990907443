"""Planes that compete take turns; one that is alone never waits."""

from __future__ import annotations

import asyncio
import socket
from itertools import count

import pytest

from kvestigate.aio.loops import fast_loop
from kvestigate.aio.stepped import SteppedLoop
from kvestigate.cluster.plane.request.fairness import Fairness
from tests.cluster.plane.conftest import Api

VERSION = "/clusters/{}/control-plane/version"


def ticking(seconds: float) -> Fairness:
    """For which every round takes so long."""
    moments = count(step=seconds)
    return Fairness(lambda: next(moments))


async def crowd(fairness: Fairness, *planes: str) -> list[str]:
    """In which order requests begin that came all at once."""
    begun: list[str] = []

    async def request(plane: str) -> None:
        if (turn := fairness.ask(plane)) is not None:
            await turn
        begun.append(plane)

    async with asyncio.TaskGroup() as group:
        for plane in planes:
            group.create_task(request(plane))
    return begun


@pytest.mark.parametrize(
    ("came", "begun"),
    [
        ("aaaa", "aaaa"),
        ("b", "b"),
        ("aaaab", "abaaa"),
        ("aaaabb", "ababaa"),
        ("abab", "abab"),
        ("aaabbbc", "abcabab"),
    ],
)
async def test_while_requests_are_long_each_plane_begins_one_in_a_round(
    came: str, begun: str
) -> None:
    fairness = ticking(0.001)
    await crowd(fairness, "b", "a")  # they have met before

    assert "".join(await crowd(fairness, *came)) == begun


async def test_while_they_are_short_it_begins_more() -> None:
    fairness = ticking(0.0)
    await crowd(fairness, "b", "a")

    begun = "".join(await crowd(fairness, *"aaaaaaaaaaaaaaab"))

    assert begun == "aabaaaaaaaaaaaaa"


async def test_a_plane_that_was_always_alone_never_waits() -> None:
    fairness = Fairness()

    assert [fairness.ask("a") for _ in range(1000)] == [None] * 1000


async def test_a_plane_is_alone_again_when_the_others_have_been_quiet() -> None:
    now = 100.0
    fairness = Fairness(lambda: now)
    await crowd(fairness, "a", "b")
    turns = [fairness.ask("b") for _ in range(5)]
    assert turns[-1] is not None
    await turns[-1]

    now += 60
    assert [fairness.ask("b") for _ in range(3)] == [None] * 3


async def test_long_work_takes_turns_with_the_requests_of_others() -> None:
    fairness = ticking(0.001)
    await crowd(fairness, "a", "b")
    done: list[str] = []

    async def work(plane: str) -> None:
        for _ in range(3):
            await fairness.pause(plane)
            done.append(plane)

    async with asyncio.TaskGroup() as group:
        for plane in "aaab":
            group.create_task(work(plane))

    assert done.index("b") < 2
    assert done[:6].count("b") == 3
    assert done.count("a") == 9


def test_what_comes_for_another_plane_during_work_is_handled_in_the_next_pause() -> None:
    order: list[str] = []

    async def scenario() -> None:
        fairness = ticking(0.0)
        await crowd(fairness, "a", "b")
        loop = asyncio.get_running_loop()
        here, there = socket.socketpair()
        with here, there:

            def read() -> None:  # and handle later, as servers do
                here.recv(1)
                loop.call_soon(order.append, "handled")

            loop.add_reader(here, read)
            there.send(b"?")
            await fairness.pause("a")
            order.append("work")
            loop.remove_reader(here)

    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(scenario())
    assert order == ["handled", "work"]


async def test_work_that_is_alone_only_lets_the_loop_turn() -> None:
    fairness = Fairness()
    await fairness.pause("a")
    assert fairness.ask("a") is None


async def test_who_gives_up_holds_up_nobody() -> None:
    fairness = ticking(0.001)
    await crowd(fairness, "a", "b")
    assert fairness.ask("a") is None
    turns = [fairness.ask("a") for _ in range(3)]
    assert turns[0] is not None
    assert turns[2] is not None
    turns[0].cancel()

    await turns[2]

    assert turns[1] is not None
    assert turns[1].done()


@pytest.mark.parametrize(
    ("planes", "seconds", "turned"),
    [("ba", 0.001, True), ("ba", 0.0, False), ("a", 0.001, False), ("aa", 0.01, True)],
    ids=["long", "short", "alone", "alone, and too long"],
)
async def test_between_steps_it_is_the_turn_of_others_if_the_step_was_long(
    planes: str, seconds: float, turned: bool
) -> None:
    now = 100.0
    fairness = Fairness(lambda: now)
    for plane in planes:
        fairness.ask(plane)
    now += seconds
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "other")

    await fairness.breathe("a")

    assert bool(turns) == turned


async def test_who_has_breathed_begins_to_count_anew() -> None:
    now = 100.0
    fairness = Fairness(lambda: now)
    await crowd(fairness, "b", "a")
    now += 0.001
    await fairness.breathe("a")
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "other")

    await fairness.breathe("a")

    assert not turns


def test_nobody_breathes_in_a_stepped_loop() -> None:
    now = 100.0
    fairness, loop = Fairness(lambda: now), SteppedLoop(0.0)
    with loop.entered():
        for plane in "ab":
            fairness.ask(plane)
        now += 60
        with pytest.raises(StopIteration):
            next(iter(fairness.breathe("b").__await__()))
    loop.close()


def test_the_rounds_of_a_stepped_loop_are_not_counted() -> None:
    fairness, loop = Fairness(), SteppedLoop(0.0)
    with loop.entered():
        assert [fairness.ask(plane) for plane in "ababbb"] == [None] * 6
    loop.close()


async def test_a_quiet_plane_is_answered_among_the_first(api: Api) -> None:
    for plane in ("noisy", "quiet"):
        await api.post("/clusters", {"id": plane})
        await api.get(VERSION.format(plane))
    answered: list[str] = []

    async def ask(plane: str) -> None:
        assert (await api.get(VERSION.format(plane))).status == 200
        answered.append(plane)

    async with asyncio.TaskGroup() as group:
        for plane in ["noisy"] * 30 + ["quiet"]:
            group.create_task(ask(plane))

    assert answered.index("quiet") < 20
