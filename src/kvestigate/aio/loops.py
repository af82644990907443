"""Which event loop servers run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where there is one; None: asyncio's own. For `asyncio.Runner(loop_factory=...)`."""
    try:
        import uvloop
    except ImportError:  # not on Windows
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
