"""The store in memory keeps the contract."""

from __future__ import annotations

import pytest

from kvestigate.plane.store.memory import MemoryBackend
from tests.contracts.store import MakeBackend, StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    def make_backend(self) -> MakeBackend:
        return MemoryBackend
