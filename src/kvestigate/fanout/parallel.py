"""The same work on many targets, a few at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Protocol, TypeVar

from kvestigate.errors import DeadlineExceeded, KvestigateError
from kvestigate.fanout.results import Outcome, Ran, TargetAddress, TargetResult, Transferred
from kvestigate.fanout.targets import Target, Targets
from kvestigate.kube import durations
from kvestigate.operation import param

R = TypeVar("R", Ran, Transferred)

AT_MOST = 8
SECONDS = 60.0


def _seconds(text: str) -> float:
    seconds = durations.parse(text)
    if not seconds:
        raise ValueError("no command ends in no time; write 60 or 2m")
    return seconds


Timeout = Annotated[
    float,
    param(
        "Time for each target; what takes longer is ended.",
        metavar="SECONDS",
        parse=_seconds,
        show="{:g}".format,
    ),
]
MaxParallel = Annotated[int, param("Targets at a time.", metavar="COUNT", lowest=1, highest=1000)]
DryRun = Annotated[bool, param("Only show what would be done where.")]


class Watcher(Protocol):
    """Receives the progress of a fan-out."""

    def begun(self, target: str, /) -> None: ...

    def ended(self, result: TargetResult, /) -> None: ...


async def fan_out(
    targets: Targets,
    work: Callable[[Target], Awaitable[R]],
    failed: Callable[[TargetAddress, Outcome, str], R],
    *,
    at_most: int,
    watcher: Watcher | None = None,
) -> tuple[R, ...]:
    """A result for each target, sorted by name.

    A KvestigateError of one target is its result. Cancelling this stops the work on all targets.
    """
    turn = asyncio.Semaphore(at_most)

    async def one(target: Target) -> R:
        async with turn:
            if watcher is not None:
                watcher.begun(target.name)
            result = await _timed(target, work, failed)
        if watcher is not None:
            watcher.ended(result)
        return result

    results: list[R] = []
    for other in targets.unreachable:
        results.append(failed(TargetAddress.of(other), Outcome.UNREACHABLE, other.reason))
        if watcher is not None:
            watcher.ended(results[-1])
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(target)) for target in targets.found]
    results += (task.result() for task in tasks)
    return tuple(sorted(results, key=lambda result: result.target.name))


async def _timed(
    target: Target,
    work: Callable[[Target], Awaitable[R]],
    failed: Callable[[TargetAddress, Outcome, str], R],
) -> R:
    began = time.monotonic()
    try:
        result = await work(target)
    except DeadlineExceeded as late:
        result = failed(TargetAddress.of(target), Outcome.TIMEOUT, _message(target, late))
    except KvestigateError as error:
        result = failed(TargetAddress.of(target), Outcome.ERROR, _message(target, error))
    return replace(result, seconds=round(time.monotonic() - began, 3))


def _message(target: Target, error: KvestigateError) -> str:
    """The error message without the name of the target, which is shown before it."""
    return error.message.removeprefix(f"{target.name}: ")
