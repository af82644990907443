"""What a backend is: the place where the store's steps become durable.

The store keeps the planes in use in memory and decides every write there; a backend is a log
of steps that were decided, and the way back from that log to memory. Steps name planes by
name and arrive in the order they were decided.

Where several servers share a backend, each decides on what it knows. A step that was decided
on less than there is, is refused alone: the backend first tells the store what it had missed
(`Feed`), and the writer is judged anew. What others do without a clash comes in by the same
door.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import msgspec

from kvestigate.cluster.plane.store.errors import StoreError
from kvestigate.cluster.plane.store.model import Change
from kvestigate.cluster.plane.store.state import PlaneState, replay


class Created(msgspec.Struct, frozen=True):
    plane: str
    template: PlaneState
    """What it starts with. The same template for many planes is stored once."""


class Forked(msgspec.Struct, frozen=True):
    source: str
    revision: int
    """Of the source: one that is retained or has a checkpoint."""
    planes: Sequence[str]


class Deleted(msgspec.Struct, frozen=True):
    plane: str


class Appended(msgspec.Struct, frozen=True):
    plane: str
    changes: Sequence[Change]


class Pinned(msgspec.Struct, frozen=True):
    """A checkpoint was taken."""

    plane: str
    checkpoint: str
    revision: int


class Unpinned(msgspec.Struct, frozen=True):
    plane: str
    checkpoint: str


class Trimmed(msgspec.Struct, frozen=True):
    """The history up to this revision is no longer needed."""

    plane: str
    revision: int


Step: TypeAlias = Created | Forked | Deleted | Appended | Pinned | Unpinned | Trimmed


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plane as it was when its last step became durable."""

    state: PlaneState
    compacted: int
    changes: Sequence[Change]
    """Everything after `compacted`."""
    checkpoints: dict[str, PlaneState]

    @classmethod
    def replayed(
        cls,
        state: PlaneState,
        changes: Iterable[Change],
        compacted: int,
        head: int,
        checkpoints: Mapping[str, int],
    ) -> Loaded:
        """A plane, from what it starts with and everything that is left of its log.

        `head` is the revision that the log has reached, if that is later than its last change.
        """
        pins = sorted(((revision, name) for name, revision in checkpoints.items()), reverse=True)
        pinned: dict[str, PlaneState] = {}
        kept: list[Change] = []
        for change in changes:
            while pins and pins[-1][0] < change.revision:
                revision, name = pins.pop()
                pinned[name] = PlaneState(revision, state.collections)
            state = replay(state, change)
            if change.revision > compacted:
                kept.append(change)
        for revision, name in reversed(pins):
            pinned[name] = PlaneState(revision, state.collections)
        present = PlaneState(max(state.revision, head), state.collections)
        return cls(present, compacted, kept, pinned)


Refusals: TypeAlias = Mapping[int, StoreError]
"""Why some steps of a group did not happen, by their place in it. The others did."""

NO_REFUSALS: Refusals = {}


class Feed(Protocol):
    """Where a shared backend reports what other servers did. The store implements it."""

    def appeared(self, plane: str) -> None:
        """There is a plane of this name."""

    def vanished(self, plane: str) -> None:
        """The plane of this name was deleted."""

    def reached(self, plane: str) -> int | None:
        """Changes after this revision are of interest; None: the plane is not in memory."""

    def happened(self, plane: str, changes: Sequence[Change]) -> None:
        """Changes in order, without `previous`; those that are known already are passed over."""

    def pinned(self, plane: str, checkpoints: Mapping[str, int]) -> None:
        """The checkpoints of a plane, with their revisions."""

    def missed(self, plane: str) -> None:
        """More may have happened in the plane than was reported: load it anew."""


class Backend(Protocol):
    """Implemented by `memory`, `sqlite` and `etcd`; each passes the contract suite of the store."""

    durable: ClassVar[bool]
    """Whether steps are kept, so that planes can be loaded again and idle ones need not stay in
    memory. Else nothing is ever committed."""
    shared: ClassVar[bool] = False
    """Whether other servers write here too, so that there may be planes not heard of yet."""

    async def open(self, feed: Feed) -> Sequence[str]:
        """Take possession; the names of all planes. Nothing else is read yet."""

    async def load(self, plane: str) -> Loaded:
        """Read one plane. It shares in memory what it shares with planes read before."""

    def commit(self, steps: Sequence[Step]) -> Awaitable[Refusals]:
        """Make the steps durable but for those refused, or none and raise StoreFailed.

        The store waits for one commit before it starts the next.
        """

    def newer(self, plane: str, revision: int) -> Awaitable[bool] | None:
        """Has another server written since? What it wrote is reported first. None: there is
        no other server."""

    @property
    def untidy(self) -> bool:
        """Whether there is something to clean after the last commit."""

    async def tidy(self) -> bool:
        """A bounded piece of cleaning, when nothing is waiting to be written; True: more to do."""

    async def close(self) -> None: ...
