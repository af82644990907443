from __future__ import annotations

import asyncio

import pytest

from kvestigate.aio.supervisor import Ready, Supervisor


async def test_start_returns_what_the_task_tells_when_it_is_ready() -> None:
    ended = asyncio.Event()

    async def server(ready: Ready[int]) -> None:
        ready(8080)
        ready(9090)  # only the first time counts
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Supervisor("test") as supervisor:
        assert await supervisor.start("server", server) == 8080
        assert not ended.is_set()
    assert ended.is_set()


async def test_a_task_that_fails_before_it_is_ready_fails_its_starter() -> None:
    async def server(ready: Ready[None]) -> None:
        raise ValueError("port in use")

    with pytest.raises(ExceptionGroup) as caught:
        async with Supervisor("test") as supervisor:
            await supervisor.start("server", server)
    assert caught.group_contains(ValueError, match="port in use")


async def test_a_task_that_ends_before_it_is_ready_is_named() -> None:
    async def server(ready: Ready[None]) -> None:
        return

    with pytest.raises(ExceptionGroup) as caught:
        async with Supervisor("cluster") as supervisor:
            await supervisor.start("scheduler", server)
    assert caught.group_contains(RuntimeError, match="cluster/scheduler ended before")


async def test_one_failure_ends_all_tasks() -> None:
    other_ended = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            other_ended.set()

    async def failing() -> None:
        raise ValueError("no")

    async def run() -> None:
        async with Supervisor("test") as supervisor:
            supervisor.spawn("forever", forever())
            await asyncio.sleep(0)
            await supervisor.spawn("failing", failing())

    with pytest.raises(ExceptionGroup):
        await run()
    assert other_ended.is_set()
