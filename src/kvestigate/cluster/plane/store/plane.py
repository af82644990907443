"""One plane: its objects, its history and those who watch it.

Two states are kept. Writers are judged against `tip`, which has every write that was decided.
Everyone else reads `state`, which has those that are durable. With the memory backend they
are always the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypeAlias

from kvestigate.cluster.plane.store.committer import Committer, Decision
from kvestigate.cluster.plane.store.errors import Compacted, NoPlane, Overtaken, Refused
from kvestigate.cluster.plane.store.history import History, Journal
from kvestigate.cluster.plane.store.interface import (
    Appended,
    Loaded,
    Pinned,
    Step,
    Trimmed,
    Unpinned,
)
from kvestigate.cluster.plane.store.model import Change, Mutation, ResourceKey
from kvestigate.cluster.plane.store.state import PlaneState, apply, replay, undo, way_back
from kvestigate.cluster.plane.store.watch import BUFFER, Hub, Subscription

Breathe: TypeAlias = Callable[[], Awaitable[None]]
"""What is called between steps of long work, for others to have their turn."""

_AT_ONCE = 16
"""Changes that are made or undone in one step: what takes a tenth of a millisecond."""


async def _at_once() -> None:
    """Nobody else needs a turn."""


class Plane:
    """Made by the Store. An idle one is this object and nothing else: no task, no queue."""

    __slots__ = (
        "__weakref__",
        "_ahead",
        "_closed",
        "_committer",
        "_hub",
        "_journal",
        "_pins",
        "_setbacks",
        "_waiting",
        "history",
        "name",
        "state",
        "tip",
    )

    def __init__(
        self,
        history: History,
        state: PlaneState,
        committer: Committer,
        journal: Journal,
        checkpoints: dict[str, PlaneState] | None = None,
    ) -> None:
        self.name = history.plane
        self.state = state
        """Everything that is durable. Hold on to it and you have a snapshot."""
        self.tip = state
        """The state by which the next write is judged. Read here to modify and write without
        losing a race against writes that are still on their way to disk."""
        self.history = history
        self._committer = committer
        self._journal = journal
        self._pins = checkpoints
        self._hub: Hub | None = None
        self._ahead: list[Change] | None = None
        """What other servers did while our own writes are under way."""
        self._closed = False
        self._setbacks = 0
        """How often decided writes did not happen."""
        self._waiting: list[asyncio.Future[None]] | None = None
        """Writers that wait for the plane to be restored; None: it is not being restored."""

    @property
    def watchers(self) -> int:
        """How many subscriptions are open."""
        return 0 if self._hub is None else len(self._hub)

    @property
    def compacted(self) -> int:
        """The oldest revision that can be watched from."""
        return self.history.compacted

    async def commit(
        self, mutations: Sequence[Mutation], actor: str = "", now: float | None = None
    ) -> list[Change]:
        """All of the mutations, or none and Refused. Returns when they are durable.

        `now`: the time of the changes; without it, that of the store's clock.

        Each gets its own revision, so that a watch can resume between any two; they become
        visible together. A refusal is reported only when the write that caused it is durable
        too: whoever reads after it sees what stood in the way.
        """
        while True:
            if self._waiting is not None:
                await self._free()
            self.require_open()
            try:
                time = self._journal.clock() if now is None else now
                changes, state = apply(self.tip, mutations, actor, time)
            except Refused:
                if await self._stands():
                    raise
                continue
            if changes:
                done = self._append(changes, state)
                if done is not None:
                    try:
                        await done
                    except Overtaken:
                        continue
            return changes

    async def write(self, mutation: Mutation, actor: str = "", now: float | None = None) -> Change:
        """Commit one mutation."""
        return (await self.commit((mutation,), actor, now))[0]

    async def restore(
        self,
        state: PlaneState,
        actor: str = "",
        breathe: Breathe = _at_once,
        now: float | None = None,
    ) -> list[Change]:
        """Write what it takes to have the objects of `state` again, at once.

        Time does not run backwards: restored objects get new revisions, and watchers see the
        way there. To have the very same bytes again, fork from the checkpoint. What is to be
        written is made up in steps, for which other writers of this plane wait.
        """
        await self._free()
        self._waiting = []
        try:
            while True:
                self.require_open()
                tip = self.tip
                time = self._journal.clock() if now is None else now
                changes, restored = await self._way_to(state, actor, time, breathe)
                self.require_open()
                if self.tip is not tip:
                    continue  # another server was faster
                if changes and (done := self._append(changes, restored)) is not None:
                    try:
                        await done
                    except Overtaken:
                        continue
                return changes
        finally:
            waiting, self._waiting = self._waiting, None
            for writer in waiting:
                if not writer.done():
                    writer.set_result(None)

    async def _way_to(
        self, state: PlaneState, actor: str, now: float, breathe: Breathe
    ) -> tuple[list[Change], PlaneState]:
        """The changes that lead there from the tip, and where they lead."""
        reached = self.tip
        mutations = way_back(reached, state)
        changes: list[Change] = []
        while some := list(islice(mutations, _AT_ONCE)):
            made, reached = apply(reached, some, actor, now)
            changes += made
            await breathe()
        return changes, reached

    async def _free(self) -> None:
        """Wait until the plane is not being restored."""
        while self._waiting is not None:
            # One of the writer's own loop, which need not be that of the one who restores.
            writer = asyncio.get_running_loop().create_future()
            self._waiting.append(writer)
            await writer

    def events_since(self, revision: int) -> list[Change]:
        """Every change after `revision`, or Compacted."""
        return self.history.since(revision)

    def at(self, revision: int) -> PlaneState:
        """The plane as it was at a retained revision or checkpoint, or Compacted."""
        known = self._known(revision)
        if known is not None:
            return known
        return undo(self.state, self.events_since(revision), revision)

    async def recall(self, revision: int, breathe: Breathe) -> PlaneState:
        """The same in steps: the way back may be long."""
        known = self._known(revision)
        if known is not None:
            return known
        state, changes = self.state, self.events_since(revision)
        for end in range(len(changes), 0, -_AT_ONCE):
            state = undo(state, changes[max(end - _AT_ONCE, 0) : end], revision)
            await breathe()
        return state

    def _known(self, revision: int) -> PlaneState | None:
        if revision >= self.state.revision:
            return self.state
        for pinned in (self._pins or {}).values():
            if pinned.revision == revision:
                return pinned
        return None

    @property
    def checkpoints(self) -> dict[str, PlaneState]:
        return dict(self._pins or {})

    async def checkpoint(self, name: str) -> PlaneState:
        """Keep the present state under a name, over restarts; replaces one of that name."""
        self.require_open()
        before, state = self.checkpoints.get(name), self.state
        self._pin(name, state)
        await self._submit(
            Pinned(self.name, name, state.revision), revert=lambda: self._pin(name, before)
        )
        return state

    async def drop_checkpoint(self, name: str) -> None:
        """Forget one; a KeyError if there is none of that name."""
        self.require_open()
        before = self.checkpoints[name]
        self._pin(name, None)
        await self._submit(Unpinned(self.name, name), revert=lambda: self._pin(name, before))

    def subscribe(
        self, resource: ResourceKey | None, since: int | None = None, limit: int = BUFFER
    ) -> Subscription:
        """Watch a resource, or everything (None), from after `since` or from now on.

        Raises Compacted at once if the history does not reach back. `limit` is how many
        changes may wait for the reader, on top of those it has missed at the start.
        """
        self.require_open()
        present = self.state.revision
        start = present if since is None else since
        missed = [] if start >= present else self.history.since(start)
        backlog = [change for change in missed if resource in (None, change.resource)]
        if self._hub is None:
            self._hub = Hub(present, self)
        subscription = Subscription(self._hub, resource, start, backlog, limit)
        self._hub.join(subscription, max(start, present))
        return subscription

    def end_watches(self, resource: ResourceKey) -> None:
        """Tell those who watch a resource that it is no longer served."""
        if self._hub is not None:
            self._hub.end_of(resource)

    def ingest(self, changes: Sequence[Change], state: PlaneState) -> None:
        """Make durable changes visible to readers and watchers."""
        if state.revision <= self.state.revision:
            return  # the plane was loaded anew while they were under way, and with them
        self.state = state
        for history in self._journal.append(self.history, changes):
            self._committer.note(Trimmed(history.plane, history.compacted))
        if self._hub:
            self._hub.publish(changes)
        else:
            self._hub = None
        if self._ahead and self.tip is state:
            self._catch_up()
        if self._journal.listener is not None:
            self._journal.listener(self.name)

    def follow(self, changes: Sequence[Change]) -> bool:
        """Make the changes of other servers visible that are new; False if some are missing."""
        if self.tip is not self.state:
            # Either these doom our writes under way or are these very writes: wait and see.
            self._ahead = [*(self._ahead or ()), *changes]
            return True
        state, fresh = self.state, []
        for change in changes:
            if change.revision == state.revision + 1:
                state = replay(state, change)
                fresh.append(change)
            elif change.revision > state.revision:
                return False
        if fresh:
            self.tip = state
            self.ingest(fresh, state)
        return True

    def reload(self, loaded: Loaded) -> None:
        """Become what was loaded. Watchers stay if the history fills the gap."""
        if loaded.compacted <= self.state.revision:
            self.follow(loaded.changes)
        else:
            self._journal.forget(self.history)
            self.history.restart(loaded.compacted, loaded.changes)
            self._journal.adopt(self.history)
            hub, self._hub, self._ahead = self._hub, None, None
            self.state = self.tip = loaded.state
            if hub is not None:
                hub.end(Compacted(hub.delivered, loaded.compacted))
        self._pins = loaded.checkpoints or None

    def repin(self, checkpoints: Mapping[str, int]) -> bool:
        """Have the checkpoints that other servers took; False if some state is not at hand."""
        pins = {}
        for name, revision in checkpoints.items():
            known = self.checkpoints.get(name)
            if known is None or known.revision != revision:
                if not self.compacted <= revision <= self.state.revision:
                    return False
                known = self.at(revision)
            pins[name] = known
        self._pins = pins or None
        return True

    async def settled(self) -> None:
        """Wait until of the writes that are on their way to disk some more are there."""
        if self.tip is not self.state:
            await self._committer.progress()

    def require_open(self) -> None:
        """NoPlane if it was deleted, or is about to be."""
        if self._closed:
            raise NoPlane(self.name)

    def retire(self) -> None:
        """From here on the plane takes no writes: its deletion is decided."""
        self.require_open()
        self._closed = True

    def revive(self) -> None:
        self._closed = False

    def rest(self) -> None:
        """Let go of what only watchers need, so that nothing holds on to an idle plane."""
        if not self._hub:
            self._hub = None

    def end(self, error: NoPlane | None) -> None:
        """Let the watchers go: with an error if the plane was deleted."""
        self._closed = True
        self._journal.forget(self.history)
        if self._hub is not None:
            self._hub.end(error)

    def _pin(self, name: str, state: PlaneState | None) -> None:
        pins = self.checkpoints
        pins.pop(name, None)
        if state is not None:
            pins[name] = state
        self._pins = pins or None

    def _append(self, changes: Sequence[Change], state: PlaneState) -> asyncio.Future[None] | None:
        """None: it is durable already."""
        self.tip = state
        return self._committer.submit(
            Decision(
                Appended(self.name, changes), partial(self.ingest, changes, state), self._revert
            )
        )

    def _revert(self) -> None:
        self.tip = self.state
        self._setbacks += 1
        self._catch_up()

    def _catch_up(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead:
            self.follow(ahead)

    async def _submit(self, step: Step, revert: Callable[[], None]) -> None:
        await self._committer.settled(Decision(step, lambda: None, revert))

    async def _stands(self) -> bool:
        """Whether a refusal rests on what is durable, and on all of it."""
        if self.tip is self.state:
            newer = self._committer.newer(self.name, self.state.revision)
            return newer is None or not await newer
        before = self._setbacks
        await self._committer.so_far()
        # What is written was written on top of everything, so there was nothing newer.
        return self._setbacks == before
