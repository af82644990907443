"""A server to be killed: writes as fast as it can and says on stdout what is acknowledged.

    A NAME REVISION COUNT    this write of COUNT was acknowledged
    W REVISION               a watcher has seen this

Arguments: the database, or an etcd and the prefix in it (http://...#/prefix); the revision to
resume watching from; and a name for the server, if it is not the only one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path

from kvestigate.cluster.plane.store.errors import NoPlane, PlaneExists
from kvestigate.cluster.plane.store.etcd.backend import EtcdBackend
from kvestigate.cluster.plane.store.history import Retention
from kvestigate.cluster.plane.store.interface import Backend
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.store import Store
from tests.contracts.store import PODS, put, value_of

WRITERS = 16
RETENTION = Retention(changes=1_000_000)


async def count_up(plane: Plane, name: str) -> None:
    while True:
        item = plane.state.get(PODS, "default", name)
        count = 0 if item is None else value_of(item.data)
        assert isinstance(count, int)
        change = await plane.write(put(name, count + 1, 0 if item is None else item.revision))
        os.write(1, b"A %s %d %d\n" % (name.encode(), change.revision, count + 1))


async def watch(plane: Plane, since: int) -> None:
    with plane.subscribe(PODS, since) as subscription:
        async for changes in subscription:
            os.write(1, b"".join(b"W %d\n" % change.revision for change in changes))


def backend_at(place: str) -> Backend:
    url, _, prefix = place.partition("#")
    return EtcdBackend([url], prefix=prefix) if prefix else SqliteBackend(Path(place))


async def opened(store: Store) -> Plane:
    while True:
        try:
            return await store.plane("one")
        except NoPlane:
            with contextlib.suppress(PlaneExists):
                return await store.create("one")


async def main(place: str, since: int, server: str) -> None:
    async with Store(backend_at(place), RETENTION) as store:
        plane = await opened(store)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch(plane, since))
            for writer in range(WRITERS):
                tasks.create_task(count_up(plane, f"writer-{server}{writer}"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), "".join(sys.argv[3:])))
