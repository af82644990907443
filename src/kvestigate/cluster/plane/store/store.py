"""The planes of one server."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from weakref import ref

from kvestigate.cluster.plane.store.committer import Committer, Decision
from kvestigate.cluster.plane.store.errors import NoPlane, PlaneExists, StoreFailed
from kvestigate.cluster.plane.store.history import History, Journal, Retention
from kvestigate.cluster.plane.store.interface import Backend, Created, Deleted, Feed, Forked, Step
from kvestigate.cluster.plane.store.model import Change
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import EMPTY, PlaneState

RESIDENT = 2000
"""Planes that stay in memory though nobody uses them, on a backend that can load them again."""


class _InMemory(ref[Plane]):
    """The way to a plane for as long as it is in memory."""

    __slots__ = ("history",)

    history: History
    """To be forgotten together with it."""


class Store(Feed):
    """Opens a backend, knows every plane by name, loads one when it is first asked for.

    A plane in use is in memory; of the idle ones, only those used last.

    async with Store(SqliteBackend(path)) as store:
        plane = await store.plane("root")
    """

    def __init__(
        self,
        backend: Backend,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.time,
        resident: int = RESIDENT,
    ) -> None:
        self._backend = backend
        self._committer = Committer(backend)
        self._journal = Journal(retention or Retention(), clock)
        self._planes: dict[str, _InMemory | None] = {}
        """Of each name; None or a dead reference: it exists and is not loaded."""
        self._resident: OrderedDict[str, Plane] = OrderedDict()
        """Those kept in memory, the one used last at the end."""
        self._most = resident if backend.durable else None
        self._moving: dict[str, asyncio.Future[None]] = {}
        """Names whose plane is being loaded, made or deleted."""
        self._early: dict[str, list[Change]] = {}
        """What other servers did to planes that are being loaded."""
        self._reloading: dict[str, asyncio.Task[None]] = {}
        self._unloaded = _unloading(self._journal)

    async def __aenter__(self) -> Store:
        try:
            self._planes = dict.fromkeys(await self._backend.open(self))
            self._committer.open()
        except BaseException:
            await self._backend.close()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Settle what was written, end every watch, release the backend."""
        await self._committer.close()
        for task in self._reloading.values():
            task.cancel()
        await asyncio.gather(*self._reloading.values(), return_exceptions=True)
        for name in self._planes:
            if (plane := self._alive(name)) is not None:
                plane.end(None)
        self._planes.clear()
        self._resident.clear()
        await self._backend.close()

    def listen(self, listener: Callable[[str], None] | None) -> None:
        """Tell `listener` the name of every plane that changes, at once; None: nobody."""
        self._journal.listener = listener

    async def idle(self) -> None:
        """Wait until everything written is durable and what nobody needs has been removed."""
        await self._committer.idle()

    def planes(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._planes)

    def __contains__(self, name: str) -> bool:
        """Whether there is such a plane, in memory or not."""
        return name in self._planes

    def __len__(self) -> int:
        """How many planes there are."""
        return len(self._planes)

    def in_memory(self) -> Iterator[Plane]:
        """The planes that are in memory when it is their turn, of those that there are now."""
        return (plane for name in list(self._planes) if (plane := self._alive(name)) is not None)

    def loaded(self, name: str) -> Plane | None:
        """The plane if it is in memory: the way that never waits."""
        plane = self._resident.get(name)
        if plane is not None:
            self._resident.move_to_end(name)
        elif (plane := self._alive(name)) is not None:
            self._keep(plane)
        return plane

    async def plane(self, name: str) -> Plane:
        """The plane, loaded first if need be; NoPlane if there is none."""
        while True:
            plane = self.loaded(name)
            if plane is not None:
                return plane
            if (moving := self._moving.get(name)) is not None:
                await asyncio.shield(moving)
            elif name in self._planes or self._backend.shared:
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
            settle=lambda: self._enter(planes),
            revert=lambda: None,
        )
        return planes

    def appeared(self, plane: str) -> None:
        self._planes.setdefault(plane, None)

    def vanished(self, plane: str) -> None:
        alive = self._alive(plane)
        if alive is None:
            self._planes.pop(plane, None)
        else:
            self._committer.abandon(plane, NoPlane(plane))
            self._remove(alive)

    def reached(self, plane: str) -> int | None:
        if plane in self._early:
            return 0
        alive = self._alive(plane)
        return None if alive is None else alive.state.revision

    def happened(self, plane: str, changes: Sequence[Change]) -> None:
        if plane in self._early:
            self._early[plane].extend(changes)
        elif (alive := self._alive(plane)) is not None and not alive.follow(changes):
            self.missed(plane)

    def pinned(self, plane: str, checkpoints: Mapping[str, int]) -> None:
        alive = self._alive(plane)
        if alive is not None and not alive.repin(checkpoints):
            self.missed(plane)

    def missed(self, plane: str) -> None:
        alive = self._alive(plane)
        if alive is not None and plane not in self._reloading:
            self._reloading[plane] = asyncio.create_task(self._reload(alive))

    async def _reload(self, plane: Plane) -> None:
        try:
            loaded = await self._backend.load(plane.name)
            if self._alive(plane.name) is plane:
                plane.reload(loaded)
        except (NoPlane, StoreFailed):
            pass  # it is gone, or is asked for again with the next change that does not fit
        finally:
            del self._reloading[plane.name]

    def _alive(self, name: str) -> Plane | None:
        reference = self._planes.get(name)
        return None if reference is None else reference()

    def _enter(self, planes: Sequence[Plane]) -> None:
        for plane in planes:
            entered = _InMemory(plane, self._unloaded)
            entered.history = plane.history
            self._planes[plane.name] = entered
            self._keep(plane)

    def _keep(self, plane: Plane) -> None:
        self._resident[plane.name] = plane
        while self._most is not None and len(self._resident) > self._most:
            _, idle = self._resident.popitem(last=False)
            idle.rest()

    def _remove(self, plane: Plane) -> None:
        if self._alive(plane.name) is plane:
            del self._planes[plane.name]
            self._resident.pop(plane.name, None)
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
        early: list[Change] = []
        self._early[name] = early
        try:
            loaded = await self._backend.load(name)
            history = History(name, loaded.compacted, loaded.changes)
            self._journal.adopt(history)
            plane = Plane(history, loaded.state, self._committer, self._journal, loaded.checkpoints)
            if name not in self._planes:
                raise NoPlane(name)
            self._enter([plane])
            plane.follow(early)
        finally:
            del self._early[name]
            del self._moving[name]
            moving.set_result(None)


def _unloading(journal: Journal) -> Callable[[ref[Plane]], None]:
    """What to do when a plane leaves memory: one for all, as each would cost as much as a plane."""

    def forget(gone: ref[Plane]) -> None:
        assert isinstance(gone, _InMemory)
        journal.forget(gone.history)

    return forget
