"""Which planes are in memory: those in use, and of the others those used last."""

from __future__ import annotations

from pathlib import Path

from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.store import Store
from tests.contracts.store import PODS, contents, names, put, read

PLANES = [f"plane-{n}" for n in range(6)]


async def filled(store: Store) -> None:
    for name in PLANES:
        await (await store.create(name)).write(put("x", name))
    await store.idle()


def in_memory(store: Store) -> list[str]:
    """Those of the planes that asking for does not load."""
    return [name for name in PLANES if store.reached(name) is not None]


async def test_idle_planes_leave_memory_and_come_back(tmp_path: Path) -> None:
    async with Store(SqliteBackend(tmp_path / "planes.db"), resident=2) as store:
        await filled(store)
        assert in_memory(store) == PLANES[-2:]
        for name in PLANES:
            plane = await store.plane(name)
            assert contents(plane.state) == {(PODS, "default", "x"): name}
            assert [change.revision for change in plane.events_since(0)] == [1]
            assert (await plane.write(put("y"))).revision == 2
            await store.idle()
        assert store.planes() == PLANES


async def test_using_a_plane_keeps_it(tmp_path: Path) -> None:
    async with Store(SqliteBackend(tmp_path / "planes.db"), resident=2) as store:
        await filled(store)
        await store.plane("plane-4")
        await store.plane("plane-0")
        assert in_memory(store) == ["plane-0", "plane-4"]


async def test_a_plane_in_use_stays_whole(tmp_path: Path) -> None:
    async with Store(SqliteBackend(tmp_path / "planes.db"), resident=1) as store:
        held = await store.create("held")
        watched = (await store.create("watched")).subscribe(PODS)
        await filled(store)
        assert store.loaded("held") is held
        await (await store.plane("watched")).write(put("a"))
        assert names(await read(watched, 1)) == ["a"]
        watched.close()
        del held
        await store.plane("plane-0")
        assert store.reached("held") is None
        assert store.reached("watched") is None


async def test_what_has_no_other_home_stays_in_memory() -> None:
    async with Store(MemoryBackend(), resident=2) as store:
        await filled(store)
        assert in_memory(store) == PLANES
