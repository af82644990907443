"""Ending a container as its spec wants: the hook, the signal, and after the grace the kill."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from kvestigate.aio.clock import Clock
from kvestigate.node.hooks import Hooks
from kvestigate.node.hosts.interface import Process
from kvestigate.node.pods import Container


class Stopping:
    """One container on its way out."""

    def __init__(self, clock: Clock, hooks: Hooks, container: Container, grace: float) -> None:
        self._clock = clock
        self._hooks = hooks
        self._container = container
        self._since = clock.now()
        self._grace = grace
        self._shortened = asyncio.Event()
        self._signalled = False

    def shorten(self, grace: float) -> None:
        if grace < self._grace:
            self._grace = grace
            self._shortened.set()

    def begin(self, process: Process) -> bool:
        """Send the signal, unless a hook comes first; whether that was the end already."""
        if self._container.lifecycle.pre_stop is None or self._grace <= 0:
            self._signal(process)
        return process.ended.done()

    def _signal(self, process: Process) -> None:
        self._signalled = True
        process.signal(stop_signal(self._container))

    async def run(self, process: Process) -> None:
        """Goes on after `begin`; returns when the container has ended."""
        hook = self._container.lifecycle.pre_stop
        if hook is not None and not self._signalled:
            work = asyncio.ensure_future(self._hooks.run(self._container, process, hook))
            await self._within_grace(process, work)
            work.cancel()
            self._signal(process)
        await self._within_grace(process)
        if not process.ended.done():
            process.kill()
        await process.ended

    async def _within_grace(
        self, process: Process, work: asyncio.Future[str] | None = None
    ) -> None:
        """Until the process or `work` has ended, or time is up."""
        while not process.ended.done() and not (work is not None and work.done()):
            left = self._since + self._grace - self._clock.now()
            if left <= 0:
                return
            self._shortened.clear()
            timer = asyncio.ensure_future(self._clock.sleep(left))
            hurry = asyncio.ensure_future(self._shortened.wait())
            either: set[asyncio.Future[Any]] = {process.ended, timer, hurry}
            if work is not None:
                either.add(work)
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
                hurry.cancel()


def stop_signal(container: Container) -> int:
    name = container.lifecycle.stop_signal
    return int(signal.Signals[name]) if name in signal.Signals.__members__ else signal.SIGTERM
