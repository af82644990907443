"""A server to be killed: writes as fast as it can and says on stdout what is acknowledged.

    A NAME REVISION COUNT    this write of COUNT was acknowledged
    W REVISION               a watcher has seen this

Arguments: the database, and the revision to resume watching from.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from kvestigate.plane.store.errors import NoPlane
from kvestigate.plane.store.history import Retention
from kvestigate.plane.store.plane import Plane
from kvestigate.plane.store.sqlite.backend import SqliteBackend
from kvestigate.plane.store.store import Store
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


async def main(database: Path, since: int) -> None:
    async with Store(SqliteBackend(database), RETENTION) as store:
        try:
            plane = await store.plane("one")
        except NoPlane:
            plane = await store.create("one")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch(plane, since))
            for writer in range(WRITERS):
                tasks.create_task(count_up(plane, f"writer-{writer}"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
