"""The planes of a server: opened by name, made on first touch."""

from __future__ import annotations

from kvestigate.plane.bootstrap import template
from kvestigate.plane.store.errors import NoPlane, PlaneExists
from kvestigate.plane.store.plane import Plane
from kvestigate.plane.store.store import Store


class Planes:
    def __init__(self, store: Store, started: float) -> None:
        self.store = store
        self.template = template(started)
        """What a plane is before anything was done to it."""

    async def find(self, name: str) -> Plane | None:
        """The plane of that name, if there is one."""
        plane = self.store.loaded(name)
        if plane is not None:
            return plane
        try:
            return await self.store.plane(name)
        except NoPlane:
            return None

    async def open(self, name: str) -> Plane:
        """The plane of that name; a new one is bootstrapped and shares all it starts with."""
        while (plane := await self.find(name)) is None:
            try:
                return await self.create(name)
            except PlaneExists:
                continue
        return plane

    async def create(self, name: str) -> Plane:
        """A new plane, bootstrapped; PlaneExists if there is one of that name."""
        return await self.store.create(name, self.template)
