"""The same work on many targets: how many at once, and what becomes of failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kvestigate.errors import ConnectionFailed, DeadlineExceeded
from kvestigate.fanout.parallel import fan_out
from kvestigate.fanout.results import Outcome, Ran, TargetAddress, TargetResult
from kvestigate.fanout.targets import Target, TargetKind, Targets, UnreachableTarget


def targets(count: int, *lost: str) -> Targets:
    found = (Target(f"n{number}", "", "ns", "p", "c") for number in range(count))
    return Targets(
        TargetKind.NODES,
        tuple(found),
        tuple(UnreachableTarget(name, name, "lost") for name in lost),
    )


class Notes:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def begun(self, target: str, /) -> None:
        self.lines.append(f"+{target}")

    def ended(self, result: TargetResult, /) -> None:
        self.lines.append(f"-{result.target.name}")


async def run(
    aim: Targets,
    work: Callable[[Target], Awaitable[Ran]],
    at_most: int = 8,
    watcher: Notes | None = None,
) -> tuple[Ran, ...]:
    return await fan_out(
        aim,
        work,
        lambda place, outcome, error: Ran(place, outcome, error=error),
        at_most=at_most,
        watcher=watcher or Notes(),
    )


def done(target: Target) -> Ran:
    return Ran(TargetAddress.of(target), Outcome.OK)


@pytest.mark.parametrize(("count", "at_most"), [(1, 8), (10, 1), (10, 3), (3, 8)])
async def test_no_more_run_at_once_than_asked_for(count: int, at_most: int) -> None:
    running, most = 0, 0

    async def work(target: Target) -> Ran:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return done(target)

    results = await run(targets(count), work, at_most)
    assert most == min(count, at_most)
    assert [it.target.name for it in results] == [f"n{number}" for number in range(count)]


async def test_a_failure_is_a_result_and_the_others_go_on() -> None:
    failures = {
        "n0": DeadlineExceeded("n0: it was ended"),
        "n1": ConnectionFailed("refused"),
    }

    async def work(target: Target) -> Ran:
        if target.name in failures:
            raise failures[target.name]
        return done(target)

    results = await run(targets(3, "n9"), work)
    assert [(it.target.name, it.outcome, it.error) for it in results] == [
        ("n0", Outcome.TIMEOUT, "it was ended"),
        ("n1", Outcome.ERROR, "refused"),
        ("n2", Outcome.OK, ""),
        ("n9", Outcome.UNREACHABLE, "lost"),
    ]


async def test_each_target_is_told_of_as_it_ends() -> None:
    notes, slow = Notes(), asyncio.Event()

    async def work(target: Target) -> Ran:
        if target.name == "n0":
            await slow.wait()
        else:
            slow.set()
        return done(target)

    await run(targets(2, "n9"), work, watcher=notes)
    assert notes.lines == ["-n9", "+n0", "+n1", "-n1", "-n0"]


async def test_whoever_gives_up_ends_all_of_them() -> None:
    started, ended = asyncio.Event(), []

    async def work(target: Target) -> Ran:
        try:
            if target.name == "n2":
                started.set()
            await asyncio.Event().wait()
        finally:
            ended.append(target.name)
        return done(target)

    running = asyncio.ensure_future(run(targets(3), work))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(ended) == ["n0", "n1", "n2"]
