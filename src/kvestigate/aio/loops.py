"""The event loop that servers run on, and the signals that stop them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where there is one; None: asyncio's own. For `asyncio.Runner(loop_factory=...)`."""
    try:
        import uvloop
    except ImportError:  # not on Windows
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def told_to_stop() -> asyncio.Event:
    """An event that SIGTERM or Ctrl-C sets, instead of ending the process."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped
