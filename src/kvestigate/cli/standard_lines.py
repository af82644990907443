"""Lines of standard input for a program that awaits them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import BinaryIO


async def read_lines(stream: BinaryIO, limit: int) -> AsyncIterator[bytes]:
    """Each line as it comes; one longer than `limit` bytes comes in pieces, which are no lines."""
    waiting: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
    loop = asyncio.get_running_loop()

    def read() -> None:
        while True:
            line = stream.readline(limit)
            try:
                asyncio.run_coroutine_threadsafe(waiting.put(line), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return  # the loop has ended while we were waiting for somebody to write
            if not line:
                return

    # A daemon: a read cannot be interrupted, and nobody should wait for it.
    threading.Thread(target=read, daemon=True).start()
    while line := await waiting.get():
        yield line
