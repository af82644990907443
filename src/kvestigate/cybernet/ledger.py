"""Who holds which workspaces: read from the hosts each time, so a restart forgets nothing."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kvestigate.cybernet import quotas
from kvestigate.cybernet.policy import check_owner
from kvestigate.cybernet.quotas import Holding, Usage
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.cybernet.spec import Cyberspace
from kvestigate.errors import KvestigateError


@dataclass(frozen=True, slots=True)
class Found:
    """What is on the hosts now."""

    holdings: Sequence[Holding]
    answered: frozenset[str] = frozenset()
    """Nodes that could be asked."""
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """Why, of each node that could not."""
    uncounted: KvestigateError | None = None
    """Why the Apps in pods are not among them."""
    no_way: KvestigateError | None = None
    """Why no host can be asked: nobody can have made a workspace, nor can one be made."""


Discover = Callable[[tuple[str, ...]], Awaitable[Found]]
"""The workspaces on these nodes; on all if there are none."""


FRESH = 2.0
"""Seconds for which what the hosts said is good enough to refuse by, though not to allow by."""


class Ledger:
    """Counts what is held, and keeps two requests from taking the same last place."""

    def __init__(self, space: Cyberspace, discover: Discover, fresh: float = FRESH) -> None:
        self._space = space
        self._discover = discover
        self._fresh = fresh
        self._asked = -math.inf
        """When the hosts were asked last."""
        self._lock = asyncio.Lock()
        self._promised: dict[object, Holding] = {}
        """Request -> what it is making."""
        self._last_seen: list[Holding] = []
        self._heard_of: set[str] = set()
        """Nodes that have answered since we started."""
        self._unknown: dict[str, str] = {}
        """Nodes that never have, and why they do not now."""
        self._uncounted: KvestigateError | None = None
        self._no_way: KvestigateError | None = None
        self.known: Usage | None = None
        """As it was when it was last counted; None: never yet."""

    async def count(self) -> None:
        """Look at the hosts; `known` is what was found."""
        async with self._lock:
            self._counted(await self._held())
            if self._no_way is not None:
                raise self._no_way

    @asynccontextmanager
    async def promised(self, wanted: Holding) -> AsyncIterator[bool]:
        """Keeps a place for `wanted` while it is made; QuotaExceeded if there is none.

        Yields whether it is there already.
        NotAllowed if somebody else has a workspace there; Unavailable if nobody knows how much
        is held.
        """
        request = object()
        async with self._lock:
            if time.monotonic() - self._asked < self._fresh:
                # Whoever has too much already may ask a thousand times: hosts hear of one.
                known = quotas.merged(self._last_seen, self._promised.values())
                quotas.check(self._space.quotas, self._counted(known), wanted)
            held = await self._held()
            if wanted.node and self._no_way is not None:
                raise self._no_way
            owner = next((it.owner for it in held if it.place == wanted.place), None)
            check_owner(owner, wanted.owner, wanted.name)
            quotas.check(self._space.quotas, self._counted(held), wanted)
            self._check_known(wanted)
            self._promised[request] = wanted
        try:
            yield owner is not None
            self._last_seen = quotas.merged(self._last_seen, [wanted])
        finally:
            del self._promised[request]
            self._counted(quotas.merged(self._last_seen, self._promised.values()))

    def gone(self, place: tuple[str, str]) -> None:
        """A workspace has been destroyed."""
        self._last_seen = [it for it in self._last_seen if it.place != place]
        self._counted(quotas.merged(self._last_seen, self._promised.values()))

    def _check_known(self, wanted: Holding) -> None:
        """A quota is kept or nothing is made: what is on a silent host may be all of it."""
        if not self._space.quotas.limits_anything:
            return
        if self._uncounted is not None and not wanted.node:
            raise Unavailable(
                f"quota usage of Apps in pods is unknown: {self._uncounted.message}",
                "quotas",
                hint="list deployments, statefulsets and jobs in all namespaces with these rights",
            )
        if self._unknown:
            node, why = next(iter(sorted(self._unknown.items())))
            raise Unavailable(
                f"node {node!r} has not answered since the gateway started ({why}), so nobody "
                "knows how much of the quotas is taken",
                "quotas",
                hint="the operator can repair it, or leave it out of constraints.hosts.allow_names",
            )

    async def _held(self) -> list[Holding]:
        # What is promised when the hosts are asked may be there, and no longer promised, when
        # they have answered without it.
        promised = list(self._promised.values())
        found = await self._discover(self._space.hosts.allow_names or ())
        missed = [it for it in self._last_seen if it.node in found.unreachable]
        self._last_seen = quotas.merged(missed, found.holdings)
        self._asked = time.monotonic()
        self._heard_of |= found.answered
        self._uncounted = found.uncounted
        self._no_way = found.no_way
        self._unknown = {
            node: why for node, why in found.unreachable.items() if node not in self._heard_of
        }
        return quotas.merged(self._last_seen, promised, self._promised.values())

    def _counted(self, held: Iterable[Holding]) -> list[Holding]:
        """Those among them that count here."""
        own = quotas.of_cyberspace(held, self._space.metadata.name)
        self.known = quotas.usage(own)
        return own
