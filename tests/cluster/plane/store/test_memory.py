"""The store in memory keeps the contract, and planes cost next to nothing."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.state import assemble
from kvestigate.cluster.plane.store.store import Store
from tests.contracts.store import MakeBackend, StoreContract, put


class TestMemory(StoreContract):
    @pytest.fixture
    def make_backend(self) -> MakeBackend:
        return MemoryBackend


def in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def test_a_plane_costs_what_it_does_not_share() -> None:
    async with Store(MemoryBackend()) as store:
        await store.create("source", assemble([put(str(n), "x" * 2800) for n in range(1000)]))
        tracemalloc.start()
        try:
            start = in_use()
            planes = await store.fork("source", [f"fork-{n}" for n in range(1000)])
            assert (in_use() - start) / 1000 < 1024
            for plane in planes:
                await plane.write(put("mine", "x" * 2800))
            assert (in_use() - start) / 1000 < 8 * 1024
        finally:
            tracemalloc.stop()
