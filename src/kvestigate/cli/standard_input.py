"""Standard input for a program that awaits it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from typing import BinaryIO

_PIECE = 64 * 1024


async def read_pieces(stream: BinaryIO) -> AsyncIterator[bytes]:
    """What comes, as it comes; one piece at a time waits to be taken."""
    waiting: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
    loop = asyncio.get_running_loop()

    def read() -> None:
        while True:
            piece = os.read(stream.fileno(), _PIECE)
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
