"""Crews take turns on the server's loop."""

from __future__ import annotations

import asyncio
from functools import partial

from kvestigate.cluster.workforce.turns import Turns


async def test_there_is_one_in_each_turn_of_the_loop() -> None:
    turns = Turns(asyncio.get_running_loop())
    done: list[str] = []
    for name in "abc":
        turns.take(partial(done.append, name))
    seen = []
    while len(done) < 3:
        await asyncio.sleep(0)
        seen.append("".join(done))
    assert seen == ["a", "ab", "abc"]


async def test_who_asks_again_comes_after_the_others() -> None:
    turns, ended = Turns(asyncio.get_running_loop()), asyncio.Event()
    done: list[str] = []

    def again() -> None:
        done.append("again")
        if len(done) < 4:
            turns.take(again)
        else:
            ended.set()

    turns.take(again)
    turns.take(partial(done.append, "other"))
    await ended.wait()

    assert done == ["again", "other", "again", "again"]


async def test_who_fails_holds_up_nobody() -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    turns = Turns(loop)
    failed: list[Exception] = []
    loop.set_exception_handler(lambda _, context: failed.append(context["exception"]))

    def fail() -> None:
        raise ValueError("no")

    turns.take(fail)
    turns.take(done.set)
    await done.wait()

    assert [str(error) for error in failed] == ["no"]
