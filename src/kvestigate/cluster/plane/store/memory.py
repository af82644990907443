"""The backend that keeps nothing: planes live as long as the process."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from kvestigate.cluster.plane.store.errors import NoPlane
from kvestigate.cluster.plane.store.interface import Backend, Feed, Loaded, Refusals, Step


class MemoryBackend(Backend):
    durable = False
    untidy = False

    async def open(self, feed: Feed) -> Sequence[str]:
        return ()

    async def load(self, plane: str) -> Loaded:
        raise NoPlane(plane)

    def commit(self, steps: Sequence[Step]) -> Awaitable[Refusals]:
        raise NotImplementedError("nothing is kept here")

    def newer(self, plane: str, revision: int) -> None:
        return None

    async def tidy(self) -> bool:
        return False

    async def close(self) -> None:
        return None
