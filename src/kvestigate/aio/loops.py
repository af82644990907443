"""Which event loop servers run on, and for how long."""

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
    """Set by SIGTERM or Ctrl-C, which end nothing by themselves from now on."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped
