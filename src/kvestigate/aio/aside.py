"""Pure work that may take long, in threads beside the loop.

A loop answers nobody while it works. What a tenant can make long (a document to parse, expressions
to compile and to run) is done in a thread instead, which Python interrupts for the loop all the
time, and which rests often (`kube.pauses`). Each party has one thing at a time done, so nobody
keeps the threads from the others.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kvestigate.kube import pauses

T = TypeVar("T")

_THREADS = 4
_SWITCH_SECONDS = 0.0001
"""How long a thread goes on while the loop wants to: Python's own 5 ms are as long as ten
requests take."""


def _paced(work: Callable[[], T]) -> T:
    with pauses.paced():
        return work()


class Aside:
    """The threads of a server; they start with the first work."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._last: dict[str, asyncio.Future[Any]] = {}
        """By party: what it has waited for or running, the last of it."""

    async def run(self, party: str, work: Callable[[], T]) -> T:
        """The result of `work`, which must not depend on the thread it runs in."""
        if self._pool is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="aside")
        while (earlier := self._last.get(party)) is not None and not earlier.done():
            await asyncio.wait([earlier])
        # Not cancelled with who asked: a thread goes on, and so the party is busy.
        future = asyncio.get_running_loop().run_in_executor(self._pool, _paced, work)
        self._last[party] = future
        future.add_done_callback(lambda done: self._ended(party, done))
        return await asyncio.shield(future)

    def _ended(self, party: str, future: asyncio.Future[Any]) -> None:
        if self._last.get(party) is future:
            del self._last[party]
        if not future.cancelled():
            future.exception()  # nobody may be left who would look at it
