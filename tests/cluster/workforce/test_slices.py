"""Slices of work on the server's loop."""

from __future__ import annotations

import asyncio
from functools import partial

from kvestigate.cluster.workforce.step import Slices


async def test_there_is_one_in_each_turn_of_the_loop() -> None:
    slices = Slices(asyncio.get_running_loop())
    done: list[str] = []
    for name in "abc":
        slices.add(partial(done.append, name))
    seen = []
    while len(done) < 3:
        await asyncio.sleep(0)
        seen.append("".join(done))
    assert seen == ["a", "ab", "abc"]


async def test_who_asks_again_comes_after_the_others() -> None:
    slices, ended = Slices(asyncio.get_running_loop()), asyncio.Event()
    done: list[str] = []

    def again() -> None:
        done.append("again")
        if len(done) < 4:
            slices.add(again)
        else:
            ended.set()

    slices.add(again)
    slices.add(partial(done.append, "other"))
    await ended.wait()

    assert done == ["again", "other", "again", "again"]


async def test_who_fails_holds_up_nobody() -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    slices = Slices(loop)
    failed: list[Exception] = []
    loop.set_exception_handler(lambda _, context: failed.append(context["exception"]))

    def fail() -> None:
        raise ValueError("no")

    slices.add(fail)
    slices.add(done.set)
    await done.wait()

    assert [str(error) for error in failed] == ["no"]
