"""Running a program never hangs and never leaves one behind, whatever it does."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kvestigate.client.auth.process import run

ENV = {"PATH": os.environ["PATH"]}


@pytest.mark.parametrize("interactive", [False, True])
async def test_output_and_exit_code_come_back(interactive: bool) -> None:
    outcome = await run(
        ["sh", "-c", "echo out; exit 3"], env=ENV, interactive=interactive, timeout=30
    )
    assert (outcome.code, outcome.stdout, outcome.stderr) == (3, b"out\n", b"")


async def test_a_flood_is_cut_off_but_read_to_its_end() -> None:
    flood = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2"
    outcome = await run(["sh", "-c", flood], env=ENV, interactive=False, timeout=30)
    assert (outcome.code, len(outcome.stdout), len(outcome.stderr)) == (0, 1 << 20, 1 << 20)


@pytest.mark.parametrize(
    "script",
    [
        "sleep 1000",
        "sleep 1000 & sleep 1000",
        "head -c 3000000 /dev/zero; sleep 1000",
        "sleep 1000 & exit 0",
        "trap '' TERM INT HUP; sleep 1000",
    ],
)
async def test_out_of_time_ends_it_and_its_children(script: str, tmp_path: Path) -> None:
    """Each process holds the pipe open: end of file there means that all are gone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(TimeoutError):
            await run(
                ["sh", "-c", f"exec 9>{pipe}; {script}"], env=ENV, interactive=False, timeout=0.5
            )
        os.set_blocking(reader, True)
        assert await asyncio.to_thread(os.read, reader, 1) == b""
    finally:
        os.close(reader)


@pytest.mark.parametrize("steps", range(12))
async def test_it_can_be_cancelled_at_any_step(steps: int) -> None:
    """The first steps are in the midst of starting."""
    task = asyncio.create_task(run(["sleep", "1000"], env=ENV, interactive=False, timeout=1000))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
