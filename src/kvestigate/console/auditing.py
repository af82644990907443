"""The audit of a cluster, made again as long as somebody looks at it, and what changed since.

One audit serves all viewers. The pause between two grows with the time that one takes, so a large
cluster is not read all the time; nobody looking means no reading.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from kvestigate.aio.aside import Aside
from kvestigate.aio.clock import Clock
from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.console.ticks import Ticker
from kvestigate.errors import KvestigateError
from kvestigate.health.audit import NEEDS, Audit, examine, with_log_lines
from kvestigate.health.watching import Change, Known, changes, known_after
from kvestigate.snapshot.collect import take

_SHORTEST = 5.0
"""Seconds between two audits, at least."""
_SHARE = 10.0
"""The pause is this many times as long as the audit took."""
_MOST_CHANGES = 200
_FRESH = 600.0
"""Seconds for which a finding counts as new."""


class LiveAudit:
    """The latest audit of one cluster."""

    def __init__(self, api: Api, access: Access, aside: Aside, clock: Clock) -> None:
        self.audit: Audit | None = None
        self.failure: KvestigateError | None = None
        self.objects_read: dict[str, int] = {}
        """Of the audit that is being made, by resource."""
        self.ticker = Ticker()
        """Ticks after every audit."""
        self.history: deque[Change] = deque(maxlen=_MOST_CHANGES)
        """What came and went, the latest first; the findings of the first audit are no change."""
        self._known: Known = {}
        self._appeared: dict[str, datetime] = {}
        self._api, self._access, self._aside, self._clock = api, access, aside, clock
        self._viewers = 0
        self._wanted = asyncio.Event()
        self._took = 0.0

    async def run(self) -> None:
        """Audit while somebody looks, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._look()
            await self._clock.sleep(max(_SHORTEST, self._took * _SHARE))
            if self._viewers:
                self._wanted.set()

    async def latest(self, patience: float) -> Audit | None:
        """The audit, however old; None if there is none within `patience` seconds."""
        if self.audit is None:
            self._wanted.set()
            try:
                async with asyncio.timeout(patience):
                    await self.ticker.after(self.ticker.count)
            except TimeoutError:
                pass
        elif self.age > _SHORTEST:
            self._wanted.set()
        return self.audit

    @asynccontextmanager
    async def viewing(self) -> AsyncIterator[None]:
        """Somebody looks: the audit is repeated."""
        self._viewers += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._viewers -= 1

    @property
    def age(self) -> float:
        """Seconds since the latest audit."""
        if self.audit is None:
            return 0.0
        return self._clock.now() - self.audit.captured_at.timestamp()

    def is_new(self, key: str) -> bool:
        """Whether a finding appeared a short while ago, and not with the first audit."""
        appeared = self._appeared.get(key)
        return appeared is not None and self._clock.now() - appeared.timestamp() < _FRESH

    async def _look(self) -> None:
        started = self._clock.now()
        try:
            audit = await self._collect()
        except KvestigateError as error:
            self.failure = error
        else:
            self._remember(audit)
            self.failure = None
        self._took = self._clock.now() - started
        self.ticker.tick()

    async def _collect(self) -> Audit:
        self.objects_read = {}

        def count(name: str, done: int, total: int = 0, /) -> None:
            self.objects_read[name] = done

        snapshot = await take(self._api, NEEDS, count)
        snapshot = await with_log_lines(self._api, snapshot)
        server = str(self._access.server)
        return await self._aside.run("audit", lambda: examine(snapshot, server))

    def _remember(self, audit: Audit) -> None:
        after = known_after(self._known, audit)
        if self.audit is not None:
            for change in changes(self._known, after, audit.captured_at):
                self.history.appendleft(change)
        self._appeared = {
            key: self._appeared.get(key, audit.captured_at)
            for key in after
            if key in self._appeared or (self.audit is not None and key not in self._known)
        }
        self._known, self.audit = after, audit
