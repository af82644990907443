"""Who depends on whom, and what follows for one object. Pure.

Objects name their owners; owners do not know their dependents. The garbage collector needs the
other direction: when a Deployment goes, which ReplicaSets named it? So this graph is kept from
the metadata of every object of every resource, custom ones included, and is asked by uid. A name
would not do: a new object with the name of a deleted owner is not the owner.

Every resource has a watch of its own, so news of an owner and of its dependents come in any order.
Edges are kept under the owner's uid, whether the owner has been seen or not. An edge therefore
never depends on which end was seen first.

Being absent from this graph proves nothing: the owner may not have been seen yet. `on_owners` is
given the state of each owner, and the collector asks the API server before it calls one DANGLING.
Deleting on the word of a cache would delete live objects whenever a watch lags.

The three ways to delete are states of metadata, not of this program, so a restart loses nothing:

* background: the owner is gone, its dependents find it DANGLING and are deleted;
* foreground: the owner keeps the `foregroundDeletion` finalizer until no dependent is left that
  has `blockOwnerDeletion`. Two objects that own each other would wait for ever: the one that finds
  a dependent which itself waits is told to `unblock`;
* orphan: the owner keeps the `orphan` finalizer until its dependents no longer name it.

One race is kube-controller-manager's too: a dependent that is created right before a foreground
deletion, and whose watch lags behind the owner's, does not hold the owner up. It is deleted all the
same, only not first.

Most changes change no edge: `refresh` takes these (a status update, a heartbeat) without a look at
the rest of the graph, and `is_kept` spares the queue objects whose owners are all here to stay.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import Metadata, OwnerReference

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


Uids: TypeAlias = dict[str, None]
"""A set that keeps its order, so that what is done about its members can be repeated."""


@dataclass(slots=True)
class Node:
    """One object."""

    resource: Resource
    metadata: Metadata

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def is_leaving(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        return self.is_leaving and FOREGROUND in self.metadata.finalizers

    @property
    def orphans(self) -> bool:
        return self.is_leaving and ORPHAN in self.metadata.finalizers


class Graph:
    """The objects of one API server by uid. Edges exist before the owner is seen."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, Uids] = {}
        """The objects that name an owner, by the owner's uid."""

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def is_kept(self, node: Node) -> bool:
        """Whether all who own it are here to stay: there is nothing to decide about it.

        When one of them leaves, that is reason enough to look at it again.
        """
        for reference in node.metadata.owner_references:
            owner = self._nodes.get(reference.uid)
            if owner is None or owner.waits_for_dependents:
                return False
        return True

    def dependents(self, uid: str) -> list[Node]:
        uids = self._dependents.get(uid, {})
        return [self._nodes[dependent] for dependent in uids if dependent in self._nodes]

    def put(self, resource: Resource, metadata: Metadata) -> Node:
        old = self._nodes.get(metadata.uid)
        before = [owner.uid for owner in old.metadata.owner_references] if old else []
        after = [owner.uid for owner in metadata.owner_references]
        node = self._nodes[metadata.uid] = Node(resource, metadata)
        for owner in after:
            self._dependents.setdefault(owner, {})[metadata.uid] = None
        for owner in before:
            if owner not in after:
                self._unlink(owner, metadata.uid)
        return node

    def refresh(self, old: Metadata | None, new: Metadata) -> bool:
        """Note the present metadata of an object that stays and has the owners it had.

        Whether that was all: then nothing is to be decided that was not decided before.
        """
        node = self._nodes.get(new.uid)
        if node is None or old is None or new.deletion_timestamp is not None:
            return False
        if old.uid != new.uid or old.owner_references != new.owner_references:
            return False
        node.metadata = new
        return True

    def remove(self, uid: str) -> Node | None:
        node = self._nodes.pop(uid, None)
        if node is not None:
            for owner in node.metadata.owner_references:
                self._unlink(owner.uid, uid)
        return node

    def _unlink(self, owner: str, dependent: str) -> None:
        edges = self._dependents.get(owner, {})
        edges.pop(dependent, None)
        if not edges:
            self._dependents.pop(owner, None)


class Step(enum.Enum):
    NOTHING = "nothing"
    DELETE = "delete"
    DELETE_FOREGROUND = "delete, dependents first"
    DELETE_ORPHANING = "delete, keep dependents"
    DROP_OWNERS = "drop owners that are gone"
    ORPHAN_DEPENDENTS = "let dependents go, then the finalizer"
    FINISH_FOREGROUND = "remove the finalizer"


@dataclass(frozen=True, slots=True)
class Decision:
    step: Step
    drop: tuple[str, ...] = ()
    """Uids of owners whose references go."""
    unblock: bool = False
    """A circle of foreground deletions: this object must not hold up its owners."""
    look_at: tuple[str, ...] = ()
    """Uids of dependents that hold the object up."""


class OwnerState(enum.Enum):
    SOLID = "exists"
    WAITING = "waits for its dependents to go"
    DANGLING = "is gone"


def on_leaving(node: Node, dependents: Iterable[Node]) -> Decision | None:
    """What its own deletion asks of an object; None if owners decide."""
    if node.orphans:
        return Decision(Step.ORPHAN_DEPENDENTS)
    if node.waits_for_dependents:
        blocking = [dependent for dependent in dependents if blocks(dependent, node)]
        if not blocking:
            return Decision(Step.FINISH_FOREGROUND)
        late = tuple(dependent.uid for dependent in blocking if not dependent.waits_for_dependents)
        return Decision(Step.NOTHING, look_at=late)
    if node.is_leaving or not node.metadata.owner_references:
        return Decision(Step.NOTHING)
    return None


def blocks(dependent: Node, owner: Node) -> bool:
    return any(
        reference.uid == owner.uid and reference.block_owner_deletion
        for reference in dependent.metadata.owner_references
    )


def on_owners(
    node: Node,
    owners: Sequence[tuple[OwnerReference, OwnerState]],
    dependents: Sequence[Node],
) -> Decision:
    """What the state of its owners means for an object."""
    by_state: dict[OwnerState, list[str]] = {state: [] for state in OwnerState}
    for reference, state in owners:
        by_state[state].append(reference.uid)
    gone = (*by_state[OwnerState.DANGLING], *by_state[OwnerState.WAITING])
    if by_state[OwnerState.SOLID]:
        return Decision(Step.DROP_OWNERS, drop=gone) if gone else Decision(Step.NOTHING)
    if by_state[OwnerState.WAITING] and dependents:
        circle = any(dependent.waits_for_dependents for dependent in dependents)
        return Decision(Step.DELETE_FOREGROUND, unblock=circle)
    if ORPHAN in node.metadata.finalizers:
        return Decision(Step.DELETE_ORPHANING)
    if FOREGROUND in node.metadata.finalizers:
        return Decision(Step.DELETE_FOREGROUND)
    return Decision(Step.DELETE)
