"""Running one short program: its output, within a time limit, leaving nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    """Negative: the signal that ended it."""
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    """Empty when the program wrote to the terminal itself."""


async def run(
    command: Sequence[str], *, env: Mapping[str, str], interactive: bool, timeout: float
) -> Outcome:
    """Run `command` to its end. TimeoutError after `timeout` seconds, OSError if it cannot start.

    An interactive program gets our terminal to read from and to write to; any other gets no
    input, and a process group of its own, so that its children end with it.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(env),
        stdin=None if interactive else DEVNULL,
        stdout=PIPE,
        stderr=None if interactive else PIPE,
        start_new_session=not interactive,
    )
    try:
        async with asyncio.timeout(timeout):
            stdout, stderr = await process.communicate()
    except BaseException:
        # Out of time, or cancelled.
        await _end(process, group=not interactive)
        raise
    assert process.returncode is not None
    return Outcome(process.returncode, stdout, stderr or b"")


async def _end(process: Process, *, group: bool) -> None:
    try:
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass
    await process.wait()
