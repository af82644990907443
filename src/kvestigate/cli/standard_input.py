"""Standard input for a program that awaits it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

_PIECE = 64 * 1024


async def read_pieces(descriptor: int) -> AsyncIterator[bytes]:
    """What a file descriptor gives, as it comes; one piece at a time waits to be taken."""
    waiting: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
    loop = asyncio.get_running_loop()

    def read() -> None:
        while True:
            try:
                piece = os.read(descriptor, _PIECE)
            except OSError:
                piece = b""
            try:
                asyncio.run_coroutine_threadsafe(waiting.put(piece), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return  # the loop has ended while we were waiting for somebody to write
            if not piece:
                return

    # A daemon: a read cannot be interrupted, and nobody should wait for it.
    threading.Thread(target=read, daemon=True).start()
    while piece := await waiting.get():
        yield piece
