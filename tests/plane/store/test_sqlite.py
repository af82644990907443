"""The store on SQLite keeps the contract, and everything else over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvestigate.plane.store.sqlite.backend import SqliteBackend
from tests.contracts.store import MakeBackend, StoreContract


class TestSqlite(StoreContract):
    @pytest.fixture
    def make_backend(self, tmp_path: Path) -> MakeBackend:
        return lambda: SqliteBackend(tmp_path / "planes.db")
