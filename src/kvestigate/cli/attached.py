"""Our own standard streams, joined to those of a process in a container."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvestigate.cli.standard_input import read_pieces
from kvestigate.errors import ConnectionFailed

if TYPE_CHECKING:
    from kvestigate.client.streams import Session


async def run_attached(running: Session, *, stdin: bool, tty: bool) -> int:
    """Pass bytes both ways until the process ends; its exit code."""
    from kvestigate.client.streams import Channel

    with _terminal(running) if tty else contextlib.nullcontext():
        feeding = asyncio.ensure_future(_feed(running)) if stdin else None
        try:
            async for piece in running:
                stream = sys.stderr if piece.channel is Channel.STDERR else sys.stdout
                stream.buffer.write(piece.data)
                stream.flush()
        finally:
            if feeding is not None:
                feeding.cancel()
                await asyncio.wait({feeding})
    assert running.exit_code is not None
    return running.exit_code


async def _feed(running: Session) -> None:
    """Send our standard input and its end; the process may have ended before."""
    try:
        async for piece in read_pieces(sys.stdin.fileno()):
            await running.write(piece)
        if running.can_end_stdin:
            await running.end_stdin()
    except ConnectionFailed:
        pass


@contextlib.contextmanager
def _terminal(running: Session) -> Iterator[None]:
    """Our terminal hands every key on, and the other one has its size."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    loop = asyncio.get_running_loop()
    resizing: set[asyncio.Future[None]] = set()

    def resize() -> None:
        columns, lines = os.get_terminal_size(descriptor)
        task = asyncio.ensure_future(running.resize(columns, lines))
        resizing.add(task)
        task.add_done_callback(resizing.discard)

    loop.add_signal_handler(signal.SIGWINCH, resize)
    try:
        tty.setraw(descriptor)
        resize()
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for task in resizing:
            task.cancel()
