"""Our own standard streams, joined to those of a process in a container."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvestigate.errors import ConnectionFailed

if TYPE_CHECKING:
    from kvestigate.client.streams import Session

_PIECE = 32 * 1024


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
    """What we read, then the end of it; the process may well have ended before."""
    pieces: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()

    def read() -> None:
        while True:
            try:
                piece = os.read(descriptor, _PIECE)
            except OSError:
                piece = b""
            try:
                asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return  # the loop has ended, and we were waiting for somebody to type
            if not piece:
                return

    # A daemon: a read from a terminal cannot be interrupted, and nobody should wait for it.
    threading.Thread(target=read, daemon=True).start()
    try:
        while piece := await pieces.get():
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
