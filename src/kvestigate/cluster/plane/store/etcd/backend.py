"""The door to an etcd."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Sequence
from typing import Any

from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.cluster.plane.store.etcd.client import PATIENCE, EtcdClient
from kvestigate.cluster.plane.store.etcd.follower import Follower
from kvestigate.cluster.plane.store.etcd.layout import Keys
from kvestigate.cluster.plane.store.etcd.reader import Reader
from kvestigate.cluster.plane.store.etcd.records import Records
from kvestigate.cluster.plane.store.etcd.writer import Writer
from kvestigate.cluster.plane.store.interface import Backend, Feed, Loaded, Refusals, Step

PREFIX = "/kvestigate"


class EtcdBackend(Backend):
    durable = True
    shared = True

    def __init__(
        self,
        endpoints: Sequence[str],
        tls: ssl.SSLContext | None = None,
        prefix: str = PREFIX,
        patience: float = PATIENCE,
    ) -> None:
        self._client = EtcdClient(endpoints, tls, patience)
        self._keys = Keys(prefix)
        self._records = Records()
        self._reader = Reader(self._client, self._keys)
        self._writer: Writer | None = None
        self._feed: Feed
        self._tasks: list[asyncio.Task[Any]] = []

    async def open(self, feed: Feed) -> Sequence[str]:
        parts = self._client, self._keys, self._records, self._reader, feed
        writer = Writer(*parts)
        follower = Follower(*parts, writer.wanted)
        await follower.survey()
        ready = asyncio.Event()
        self._tasks = [
            asyncio.create_task(follower.follow(ready.set), name="etcd/follow"),
            asyncio.create_task(follower.pulse(), name="etcd/pulse"),
        ]
        await ready.wait()
        self._feed, self._writer = feed, writer
        for ident in await self._reader.dead():
            writer.cleaner.deleted(ident)
        return self._records.names()

    async def load(self, plane: str) -> Loaded:
        loaded, record, written = await self._reader.load(plane)
        self._records.learn(self._feed, plane, record, written)
        return loaded

    def commit(self, steps: Sequence[Step]) -> Awaitable[Refusals]:
        return self._opened().commit(steps)

    def newer(self, plane: str, revision: int) -> Awaitable[bool]:
        return self._opened().newer(plane, revision)

    @property
    def untidy(self) -> bool:
        return self._opened().cleaner.busy

    async def tidy(self) -> bool:
        return await self._opened().cleaner.step()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    def _opened(self) -> Writer:
        if self._writer is None:
            raise StoreFailed("the etcd is not open")
        return self._writer
