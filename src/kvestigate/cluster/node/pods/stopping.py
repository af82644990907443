"""Ending a container as its spec wants: the hook, its turn, the signal, and at last the kill."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import Any

from kvestigate.aio.clock import Clock
from kvestigate.cluster.node.hosts.interface import Ending, Process
from kvestigate.cluster.node.pods.hooks import Hooks
from kvestigate.cluster.node.spec.pod import Container

LEAST_GRACE = 2.0
"""Seconds between signal and kill, however little was asked for or the hook has left."""


class Stopping:
    """One container on its way out."""

    def __init__(
        self,
        clock: Clock,
        hooks: Hooks,
        container: Container,
        grace: float,
        *,
        ahead: Sequence[asyncio.Future[Ending]] = (),
        hook_failed: Callable[[], None] = lambda: None,
    ) -> None:
        """`ahead` are the ends of those whose turn comes first."""
        self._clock = clock
        self._hooks = hooks
        self._container = container
        self._hook_failed = hook_failed
        self._ahead = [end for end in ahead if not end.done()]
        self._until = clock.now() + grace
        self._shortened = asyncio.Event()
        self._hook = container.lifecycle.pre_stop if grace > 0 else None
        self._signalled = False

    def shorten(self, grace: float) -> None:
        until = self._clock.now() + grace
        if until < self._until:
            self._until = until
            self._shortened.set()

    def begin(self, process: Process) -> bool:
        """Send the signal, unless a hook or another container is first; True if that ended it."""
        if self._hook is None and not self._ahead:
            self._signal(process)
        return process.ended.done()

    def _signal(self, process: Process) -> None:
        self._signalled = True
        self._until = max(self._until, self._clock.now() + LEAST_GRACE)
        process.signal(stop_signal(self._container))

    async def run(self, process: Process) -> None:
        """Goes on after `begin`; returns when the container has ended."""
        if self._hook is not None:
            await self._run_hook(process)
        if self._ahead:
            await self._within_grace(process, asyncio.ensure_future(asyncio.wait(self._ahead)))
        if not self._signalled:
            self._signal(process)
        await self._within_grace(process)
        if not process.ended.done():
            process.kill()
        await process.ended

    async def _run_hook(self, process: Process) -> None:
        assert self._hook is not None
        work = asyncio.ensure_future(self._hooks.run(self._container, process, self._hook))
        await self._within_grace(process, work)
        if work.done() and not work.cancelled() and work.result():
            self._hook_failed()

    async def _within_grace(
        self, process: Process, work: asyncio.Future[Any] | None = None
    ) -> None:
        """Until the process or `work` has ended, or time is up and `work` is given up."""
        awaited: set[asyncio.Future[Any]] = (
            {process.ended} if work is None else {process.ended, work}
        )
        try:
            while not any(future.done() for future in awaited):
                left = self._until - self._clock.now()
                if left <= 0:
                    break
                await self._for_a_while(awaited, left)
        finally:
            if work is not None:
                work.cancel()

    async def _for_a_while(self, awaited: set[asyncio.Future[Any]], seconds: float) -> None:
        self._shortened.clear()
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        hurry = asyncio.ensure_future(self._shortened.wait())
        try:
            await asyncio.wait({*awaited, timer, hurry}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            hurry.cancel()


def stop_signal(container: Container) -> int:
    name = container.lifecycle.stop_signal
    return int(signal.Signals[name]) if name in signal.Signals.__members__ else signal.SIGTERM
