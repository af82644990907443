"""Running one short program: its output, within a time limit, leaving nothing behind.

On the loop's own transport rather than `asyncio.create_subprocess_exec`, whose `wait` does not
return for a program that was killed with output left unread.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_MOST = 1 << 20
"""Bytes kept of each of its outputs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    """Negative: the signal that ended it."""
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    """Empty when the program wrote to the terminal itself."""


class _Output(asyncio.SubprocessProtocol):
    """Collects what the program writes; `ended` once it is gone and its pipes are closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pipes = {1: bytearray(), 2: bytearray()}
        self.ended: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.pipes[fd]
        kept += data[: _MOST - len(kept)]

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def run(
    command: Sequence[str], *, env: Mapping[str, str], interactive: bool, timeout: float
) -> Outcome:
    """Run `command` to its end. TimeoutError after `timeout` seconds, OSError if it cannot start.

    An interactive program gets our terminal to read from and to write to; any other gets no
    input, and a process group of its own, so that its children end with it.
    """
    loop = asyncio.get_running_loop()
    transport, output = await loop.subprocess_exec(
        lambda: _Output(loop),
        *command,
        env=dict(env),
        stdin=None if interactive else DEVNULL,
        stdout=PIPE,
        stderr=None if interactive else PIPE,
        start_new_session=not interactive,
    )
    # Asked now: some loops forget it when the program ends, which its children may outlive.
    pid = transport.get_pid()
    try:
        async with asyncio.timeout(timeout):
            await asyncio.shield(output.ended)
    except BaseException:
        # Out of time, or cancelled.
        _kill(transport, None if interactive else pid)
        transport.close()
        await output.ended
        raise
    code = transport.get_returncode()
    transport.close()
    assert code is not None
    return Outcome(code, bytes(output.pipes[1]), bytes(output.pipes[2]))


def _kill(transport: asyncio.SubprocessTransport, group: int | None) -> None:
    try:
        if group is None:
            transport.kill()
        else:
            os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
