"""Asks kubelets what their containers use, through the API server like anybody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from urllib.parse import quote

import msgspec

from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api
from kvestigate.cluster.assembly.metrics.usage import NodeUsage, Summary, usage
from kvestigate.errors import ApiError

FRESH_SECONDS = 2.0
"""For how long a measurement is reused: an average over less time is noise."""
_AT_ONCE = 16
_TIMEOUT = 10.0

_decode = msgspec.json.Decoder(Summary).decode


class Scraper:
    """The latest usage of each node, measured when a client asks for it."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, NodeUsage] = {}
        self._asking: dict[str, asyncio.Future[NodeUsage | None]] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def of(self, nodes: Iterable[str]) -> Mapping[str, NodeUsage]:
        """Of those nodes that answer."""
        names = list(dict.fromkeys(nodes))
        usages = await asyncio.gather(*map(self._node, names))
        return {name: used for name, used in zip(names, usages, strict=True) if used is not None}

    def keep_only(self, nodes: Iterable[str]) -> None:
        """Forget the nodes that are no more."""
        for name in self._known.keys() - set(nodes):
            del self._known[name]

    async def _node(self, name: str) -> NodeUsage | None:
        known = self._known.get(name)
        if known is not None and self._clock.now() - known.at < FRESH_SECONDS:
            return known
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = asyncio.ensure_future(self._ask(name, known))
            asking.add_done_callback(lambda _: self._asking.pop(name, None))
        # Whoever started the question may leave; the others still want the answer.
        return await asyncio.shield(asking)

    async def _ask(self, name: str, known: NodeUsage | None) -> NodeUsage | None:
        path = f"/api/v1/nodes/{quote(name, safe='')}/proxy/stats/summary"
        try:
            async with self._room:
                answer = await self._api.request("GET", path, timeout=_TIMEOUT)
            summary = _decode(answer)
        except (ApiError, msgspec.DecodeError):
            return None
        before = known.counts if known is not None else {}
        self._known[name] = fresh = usage(summary, before, self._clock.now())
        return fresh
