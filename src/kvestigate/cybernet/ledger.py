"""Who holds which workspaces: read from the hosts each time, so a restart forgets nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kvestigate.cybernet import quotas
from kvestigate.cybernet.quotas import Holding, Usage
from kvestigate.cybernet.spec import Cyberspace


@dataclass(frozen=True, slots=True)
class Found:
    """What is on the hosts now."""

    holdings: Sequence[Holding]
    unreachable: frozenset[str] = frozenset()
    """Nodes that could not be asked."""


Discover = Callable[[tuple[str, ...]], Awaitable[Found]]
"""The workspaces on these nodes; on all if there are none."""


class Ledger:
    """Counts what is held, and keeps two requests from taking the same last place."""

    def __init__(self, space: Cyberspace, discover: Discover) -> None:
        self._space = space
        self._discover = discover
        self._lock = asyncio.Lock()
        self._promised: dict[object, Holding] = {}
        """Request -> what it is making."""
        self._last_seen: list[Holding] = []
        self.known: Usage | None = None
        """As it was when it was last counted; None: never yet."""

    async def count(self) -> Usage:
        """What the identities of this cyberspace hold, now."""
        async with self._lock:
            held = await self._held()
        return quotas.usage(held)

    @asynccontextmanager
    async def promised(self, wanted: Holding) -> AsyncIterator[None]:
        """Keeps a place for `wanted` while it is made; QuotaExceeded if there is none."""
        async with self._lock:
            held = await self._held()
            quotas.check(self._space.quotas, held, wanted)
            request = object()
            self._promised[request] = wanted
        try:
            yield
        finally:
            del self._promised[request]

    async def _held(self) -> list[Holding]:
        # What is promised when the hosts are asked may be there, and no longer promised, when
        # they have answered without it.
        promised = list(self._promised.values())
        found = await self._discover(self._space.hosts.allow_names or ())
        missed = [it for it in self._last_seen if it.node in found.unreachable]
        self._last_seen = quotas.merged(missed, found.holdings)
        held = quotas.merged(self._last_seen, promised, self._promised.values())
        own = quotas.of_cyberspace(held, self._space.metadata.name)
        self.known = quotas.usage(own)
        return own
