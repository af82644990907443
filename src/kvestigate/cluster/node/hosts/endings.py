"""Learning that a process has ended, be it our child or not, without asking again and again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable


def on_exit(pid: int, tell: Callable[[], None]) -> Callable[[], None]:
    """Call `tell` once when `pid` ends; returns the way to stop waiting.

    A child becomes a zombie then: reaping it is the caller's.
    """
    loop = asyncio.get_running_loop()
    try:
        descriptor = _readable_at_exit(pid)
    except ProcessLookupError:
        loop.call_soon(tell)
        return lambda: None

    def release() -> None:
        nonlocal descriptor
        if descriptor >= 0:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            descriptor = -1

    def ended() -> None:
        release()
        tell()

    loop.add_reader(descriptor, ended)
    return release


if sys.platform == "linux":

    def _readable_at_exit(pid: int) -> int:
        return os.pidfd_open(pid)

else:
    import select

    def _readable_at_exit(pid: int) -> int:
        queue = select.kqueue()
        event = select.kevent(
            pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, fflags=select.KQ_NOTE_EXIT
        )
        queue.control([event], 0)
        descriptor = os.dup(queue.fileno())
        queue.close()
        return descriptor
