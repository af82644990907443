"""The thread that has the database, and the door to it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.cluster.plane.store.interface import (
    NO_REFUSALS,
    Backend,
    Feed,
    Loaded,
    Refusals,
    Step,
)
from kvestigate.cluster.plane.store.sqlite.log import Log

T = TypeVar("T")


class SqliteBackend(Backend):
    durable = True
    untidy = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._log: Log | None = None

    async def open(self, feed: Feed) -> Sequence[str]:
        self._log = await self._call(partial(Log, self._path))
        return await self._call(self._log.planes)

    async def load(self, plane: str) -> Loaded:
        return await self._call(partial(self._opened().load, plane))

    def commit(self, steps: Sequence[Step]) -> Awaitable[Refusals]:
        return self._call(partial(self._commit, steps))

    def newer(self, plane: str, revision: int) -> None:
        return None

    async def tidy(self) -> bool:
        self.untidy = await self._call(self._opened().tidy)
        return self.untidy

    async def close(self) -> None:
        if self._log is not None:
            await self._call(self._log.close)
            self._log = None
        self._thread.shutdown()

    def _commit(self, steps: Sequence[Step]) -> Refusals:
        self.untidy = self._opened().commit(steps)
        return NO_REFUSALS

    def _opened(self) -> Log:
        if self._log is None:
            raise StoreFailed(f"{self._path} is not open")
        return self._log

    def _call(self, work: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, work)

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise StoreFailed(f"{self._path}: {error}", hint=_hint(error)) from error


def _hint(error: sqlite3.Error) -> str | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return "another server has this database open; stop it or use another directory"
    if code == sqlite3.SQLITE_FULL:
        return "free some disk space; writes work again as soon as there is room"
    return None
