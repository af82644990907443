"""What a backend is: the place where the store's steps become durable.

The store keeps every open plane in memory and decides every write there; a backend is a log
of steps that were decided, and the way back from that log to memory. Steps name planes by
name and arrive in the order they were decided.

An etcd backend, where several servers write the same planes, fits as follows. A body has a
hole for the revision, so it is written to etcd as it is, under a compare on the key's
mod_revision, and the hole is filled from mod_revision when the write comes back. etcd's watch
feeds every server, the writer included: what it delivers goes through the same door by which
a local commit becomes visible (`Plane.ingest`), and the writer is acknowledged when its own
revision has passed there. Revisions then only increase; nothing above relies on them being
dense. A fork is a record (parent, revision) as in the SQLite backend, and layered keys.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kvestigate.plane.store.model import Change
from kvestigate.plane.store.state import PlaneState


@dataclass(frozen=True, slots=True)
class Created:
    plane: str
    template: PlaneState
    """What it starts with. The same template for many planes is stored once."""


@dataclass(frozen=True, slots=True)
class Forked:
    source: str
    revision: int
    """Of the source: one that is retained or has a checkpoint."""
    planes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Deleted:
    plane: str


@dataclass(frozen=True, slots=True)
class Appended:
    plane: str
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Pinned:
    """A checkpoint was taken."""

    plane: str
    checkpoint: str
    revision: int


@dataclass(frozen=True, slots=True)
class Unpinned:
    plane: str
    checkpoint: str


@dataclass(frozen=True, slots=True)
class Trimmed:
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


class Backend(Protocol):
    """Implemented by `memory` and `sqlite`; each passes the contract suite of the store."""

    async def open(self) -> Sequence[str]:
        """Take possession; the names of all planes. Nothing else is read yet."""

    async def load(self, plane: str) -> Loaded:
        """Read one plane. It shares in memory what it shares with planes read before."""

    def commit(self, steps: Sequence[Step]) -> Awaitable[None] | None:
        """Make all steps durable, or none and raise StoreFailed. None: they already are.

        The store waits for one commit before it starts the next.
        """

    async def tidy(self) -> bool:
        """A bounded piece of cleaning, when nothing is waiting to be written; True: more to do."""

    async def close(self) -> None: ...
