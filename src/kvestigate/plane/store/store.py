"""The planes of one server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from kvestigate.plane.store.committer import Committer, Decision
from kvestigate.plane.store.errors import NoPlane, PlaneExists
from kvestigate.plane.store.history import History, Journal, Retention
from kvestigate.plane.store.interface import Backend, Created, Deleted, Forked, Step
from kvestigate.plane.store.plane import Plane
from kvestigate.plane.store.state import EMPTY, PlaneState


class Store:
    """Opens a backend, knows every plane by name, loads one when it is first asked for.

    async with Store(SqliteBackend(path)) as store:
        plane = await store.plane("root")
    """

    def __init__(
        self,
        backend: Backend,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._backend = backend
        self._committer = Committer(backend)
        self._journal = Journal(retention or Retention(), clock)
        self._planes: dict[str, Plane | None] = {}
        """None: it exists and is not loaded."""
        self._moving: dict[str, asyncio.Future[None]] = {}
        """Names whose plane is being loaded, made or deleted."""

    async def __aenter__(self) -> Store:
        try:
            self._planes = dict.fromkeys(await self._backend.open())
        except BaseException:
            await self._backend.close()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Settle what was written, end every watch, release the backend."""
        await self._committer.close()
        for plane in self._planes.values():
            if plane is not None:
                plane.end(None)
        self._planes.clear()
        await self._backend.close()

    async def idle(self) -> None:
        """Wait until everything written is durable and what nobody needs has been removed."""
        await self._committer.idle()

    def planes(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._planes)

    def loaded(self, name: str) -> Plane | None:
        """The plane if it is in memory: the way that never waits."""
        return self._planes.get(name)

    async def plane(self, name: str) -> Plane:
        """The plane, loaded first if need be; NoPlane if there is none."""
        while True:
            plane = self._planes.get(name)
            if plane is not None:
                return plane
            if (moving := self._moving.get(name)) is not None:
                await asyncio.shield(moving)
            elif name in self._planes:
                await self._load(name)
            else:
                raise NoPlane(name)

    async def create(self, name: str, template: PlaneState = EMPTY) -> Plane:
        """A new plane that starts with the objects of `template`, which it shares."""
        (plane,) = await self._add([name], template, Created(name, template))
        return plane

    async def fork(
        self, source: str, names: Sequence[str], revision: int | None = None
    ) -> list[Plane]:
        """Planes that start where `source` is, or was at `revision`: independent from then on.

        Any retained revision or one with a checkpoint will do (else Compacted). From the
        present or a checkpoint it takes the same time whatever the source holds.
        """
        plane = await self.plane(source)
        plane.require_open()
        start = plane.state if revision is None else plane.at(revision)
        return await self._add(names, start, Forked(source, start.revision, tuple(names)))

    async def delete(self, name: str) -> None:
        """Remove a plane; its forks keep what they share with it. Watchers get NoPlane."""
        plane = await self.plane(name)
        plane.retire()
        await self._move(
            [name], Deleted(name), settle=lambda: self._remove(plane), revert=plane.revive
        )

    async def _add(self, names: Sequence[str], start: PlaneState, step: Step) -> list[Plane]:
        while clash := [self._moving[name] for name in names if name in self._moving]:
            await asyncio.shield(clash[0])
        for name in names:
            if name in self._planes:
                raise PlaneExists(name)
        if len(set(names)) != len(names):
            raise PlaneExists(max(names, key=names.count))
        planes = [
            Plane(History(name, start.revision), start, self._committer, self._journal)
            for name in names
        ]
        await self._move(
            names,
            step,
            settle=lambda: self._planes.update({plane.name: plane for plane in planes}),
            revert=lambda: None,
        )
        return planes

    def _remove(self, plane: Plane) -> None:
        del self._planes[plane.name]
        plane.end(NoPlane(plane.name))

    async def _move(
        self,
        names: Sequence[str],
        step: Step,
        settle: Callable[[], None],
        revert: Callable[[], None],
    ) -> None:
        """Commit a step that makes planes come or go; who asks for them meanwhile waits."""
        moving: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def arrive(then: Callable[[], None]) -> None:
            for name in names:
                self._moving.pop(name, None)
            then()
            moving.set_result(None)

        self._moving.update(dict.fromkeys(names, moving))
        await self._committer.settled(
            Decision(step, settle=lambda: arrive(settle), revert=lambda: arrive(revert))
        )

    async def _load(self, name: str) -> None:
        moving = self._moving[name] = asyncio.get_running_loop().create_future()
        try:
            loaded = await self._backend.load(name)
            history = History(name, loaded.compacted, loaded.changes)
            self._journal.adopt(history)
            self._planes[name] = Plane(
                history, loaded.state, self._committer, self._journal, loaded.checkpoints
            )
        finally:
            del self._moving[name]
            moving.set_result(None)
