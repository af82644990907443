"""The planes of a server: opened by name, made on first touch."""

from __future__ import annotations

from kvestigate.plane.bootstrap import template
from kvestigate.plane.store.errors import NoPlane, PlaneExists
from kvestigate.plane.store.plane import Plane
from kvestigate.plane.store.store import Store


class Planes:
    def __init__(self, store: Store, started: float) -> None:
        self.store = store
        self._template = template(started)

    async def open(self, name: str) -> Plane:
        """The plane of that name; a new one is bootstrapped and shares all it starts with."""
        plane = self.store.loaded(name)
        if plane is not None:
            return plane
        while True:
            try:
                return await self.store.plane(name)
            except NoPlane:
                pass
            try:
                return await self.create(name)
            except PlaneExists:
                continue

    async def create(self, name: str) -> Plane:
        """A new plane, bootstrapped; PlaneExists if there is one of that name."""
        return await self.store.create(name, self._template)
