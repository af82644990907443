"""Running one short program: its output, within a time limit, leaving nothing behind.

On the loop's own transport rather than `asyncio.create_subprocess_exec`: on Python 3.11 that
one never returns when it is cancelled while starting, or ended with output left unread.
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
    transport, output = await _start(command, env, interactive)
    try:
        async with asyncio.timeout(timeout):
            await asyncio.shield(output.ended)
    except BaseException:
        # Out of time, or cancelled.
        await _end(transport, output, group=not interactive)
        raise
    code = transport.get_returncode()
    transport.close()
    assert code is not None
    return Outcome(code, bytes(output.pipes[1]), bytes(output.pipes[2]))


async def _start(
    command: Sequence[str], env: Mapping[str, str], interactive: bool
) -> tuple[asyncio.SubprocessTransport, _Output]:
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: _Output(loop),
            *command,
            env=dict(env),
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            stderr=None if interactive else PIPE,
            start_new_session=not interactive,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Starting takes moments and must not be interrupted; then there is something to end.
        await asyncio.wait({starting})
        if starting.exception() is None:
            await _end(*starting.result(), group=not interactive)
        raise


async def _end(transport: asyncio.SubprocessTransport, output: _Output, *, group: bool) -> None:
    try:
        if group:
            os.killpg(transport.get_pid(), signal.SIGKILL)
        else:
            transport.kill()
    except ProcessLookupError:
        pass
    transport.close()
    await output.ended
