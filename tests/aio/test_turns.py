from __future__ import annotations

import asyncio

import pytest

from kvestigate.aio.turns import Turns


async def rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def crowd(turns: Turns, size: int) -> tuple[list[int], list[asyncio.Task[None]]]:
    """So many callers that are all ready at once, and who of them had a turn."""
    served: list[int] = []

    async def call(number: int) -> None:
        await turns.take()
        served.append(number)

    return served, [asyncio.create_task(call(number)) for number in range(size)]


@pytest.mark.parametrize("size", [1, 3])
async def test_few_callers_do_not_wait(size: int) -> None:
    served, _ = await crowd(Turns(3), size)
    await rounds(1)
    assert served == list(range(size))


async def test_others_on_the_loop_have_their_turn_before_a_crowd_is_served() -> None:
    served, callers = await crowd(Turns(2), 100)
    await rounds(20)
    assert 2 <= len(served) < 100
    await asyncio.gather(*callers)
    assert served == list(range(100))


async def test_who_gives_up_does_not_hold_up_the_others() -> None:
    served, callers = await crowd(Turns(1), 5)
    await rounds(1)
    callers[1].cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    assert served == [0, 2, 3, 4]


async def test_callers_after_a_pause_do_not_wait() -> None:
    turns = Turns(2)
    await asyncio.gather(*(turns.take() for _ in range(10)))
    await rounds(5)
    served, _ = await crowd(turns, 2)
    await rounds(1)
    assert served == [0, 1]
