"""Rests in long work, so that the event loop of the process can go on.

Python runs one thread at a time. A thread that works beside the loop is interrupted for it, but
the loop waits for each interruption, several times for one request. And where the processors are
busy, the system stops the thread for milliseconds while it keeps the interpreter from everybody.
Shorter turns (`sys.setswitchinterval`) do not help; a thread that mostly sleeps does.

So code that a stranger's input can make long calls `rest_if_due` in its innermost loop. That does
something only in a thread that is `paced`: measured, a neighbour's p99 beside a policy that runs
until its budget ends fell from 2-10 times to that of a quiet server.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_WORK, _REST = 0.00025, 0.00075
"""Seconds from one rest to the next, and of each rest. A request of somebody else waits for one
stretch of work, so the stretch is shorter than such a request takes (0.3 ms)."""


class _Pace(threading.local):
    due: float = math.inf
    """When this thread rests next."""


_pace = _Pace()


def rest_if_due() -> None:
    """Let other threads run, if this one is paced and has worked for long enough."""
    if time.perf_counter() >= _pace.due:
        time.sleep(_REST)
        _pace.due = time.perf_counter() + _WORK


@contextmanager
def paced() -> Iterator[None]:
    """Have this thread rest."""
    _pace.due = time.perf_counter() + _WORK
    try:
        yield
    finally:
        _pace.due = math.inf
