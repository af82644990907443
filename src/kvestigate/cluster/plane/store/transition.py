"""From one state of a plane to the next: what a mutation does, and the way back to an old state.

Pure: the time and the actor are arguments.

A `PlaneState` is a value that never changes, so a write is a function from a state to the next one.
A `Mutation` says what a writer wants (put these bytes, remove that name) and which revision of the
object it has seen. `apply` is the only place that decides whether that still holds: an object that
has another revision, is missing, or is there already refuses the whole list, and the state that
was given is still as it was. There is nothing to roll back.

The result is a list of `Change`s, one revision each. A change has the object as it is now and, in
`previous`, as it was. That is all the history needs:

- `replay` builds the state again from changes that were read from a backend, which do not store
  `previous`: it is looked up in the state before each.
- `undo` goes backwards from a state by means of `previous`, to a revision that is still retained.
- `way_back` goes forwards to old contents: restoring a checkpoint is a list of ordinary mutations,
  which get new revisions. Watchers see them as changes like any other, and no revision is ever
  used twice.

The bytes of an object carry its own resourceVersion, which a writer cannot know beforehand. It
leaves a hole, and `body.fill` writes the revision into it here (see `body`). An object that is
written again as it was (`way_back`, and the last form of a deleted one) has its hole reopened
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kvestigate.cluster.plane.store import body
from kvestigate.cluster.plane.store.difference import diff
from kvestigate.cluster.plane.store.errors import Missing, refusal
from kvestigate.cluster.plane.store.model import (
    ABSENT,
    Change,
    ChangeType,
    Item,
    Mutation,
    Put,
    Remove,
    ResourceKey,
    intern_labels,
)
from kvestigate.cluster.plane.store.state import EMPTY, PlaneState


def apply(
    state: PlaneState, mutations: Iterable[Mutation], actor: str, now: float
) -> tuple[list[Change], PlaneState]:
    """The changes and the state after all of them; raises Refused if one cannot be made."""
    changes = []
    for mutation in mutations:
        change = _change(state, mutation, actor, now)
        changes.append(change)
        item = change.item
        if change.type is ChangeType.DELETED:
            state = state.remove(change.resource, item.namespace, item.name, change.revision)
        else:
            state = state.put(change.resource, item)
    return changes, state


def assemble(puts: Sequence[Put]) -> PlaneState:
    """A state made from nothing: a template for new planes."""
    _, state = apply(EMPTY, puts, actor="", now=0.0)
    return state


def replay(state: PlaneState, change: Change) -> PlaneState:
    """The state after a change that was read somewhere; notes in it what it replaced."""
    item = change.item
    before = change.previous = state.get(change.resource, item.namespace, item.name)
    if change.type is not ChangeType.DELETED:
        return state.put(change.resource, item)
    if before is None:
        return PlaneState(change.revision, state.collections)
    return state.remove(change.resource, item.namespace, item.name, change.revision)


def undo(state: PlaneState, changes: Sequence[Change], revision: int) -> PlaneState:
    """The state before `changes`, the last of which led to `state`."""
    for change in reversed(changes):
        item = change.item
        if change.previous is not None:
            state = state.put(change.resource, change.previous, revision)
        else:
            state = state.remove(change.resource, item.namespace, item.name, revision)
    return state


def way_back(present: PlaneState, past: PlaneState) -> Iterator[Mutation]:
    """The mutations that give `present` the objects of `past`."""
    return (_towards(*difference) for difference in diff(present, past))


def _towards(resource: ResourceKey, current: Item | None, wanted: Item | None) -> Mutation:
    if wanted is None:
        assert current is not None  # a difference has at least one side
        return Remove(resource, current.namespace, current.name, current.revision)
    return Put(
        resource,
        wanted.namespace,
        wanted.name,
        wanted.uid,
        body.reopened(wanted.data, wanted.revision),
        ABSENT if current is None else current.revision,
        wanted.labels,
        wanted.owners,
        wanted.fields,
    )


def _change(state: PlaneState, mutation: Mutation, actor: str, now: float) -> Change:
    resource, namespace, name = mutation.resource, mutation.namespace, mutation.name
    before = state.get(resource, namespace, name)
    actual = ABSENT if before is None else before.revision
    if actual != mutation.expect:
        raise refusal(resource, namespace, name, mutation.expect, actual)
    revision = state.revision + 1
    if isinstance(mutation, Remove):
        if before is None:
            raise Missing(resource, namespace, name, mutation.expect, actual)
        item = _last_form(mutation, before, revision)
        return Change(revision, ChangeType.DELETED, resource, item, before, actor, now)
    item = Item(
        namespace if before is None else before.namespace,
        name if before is None else before.name,
        mutation.uid,
        revision,
        revision if before is None else before.created_revision,
        body.fill(mutation.body, revision),
        intern_labels(mutation.labels),
        mutation.owners,
        mutation.fields,
    )
    kind = ChangeType.ADDED if before is None else ChangeType.MODIFIED
    return Change(revision, kind, resource, item, before, actor, now)


def _last_form(mutation: Remove, before: Item, revision: int) -> Item:
    last = mutation.body
    if last is None:
        last = body.reopened(before.data, before.revision)
    return Item(
        before.namespace,
        before.name,
        before.uid,
        revision,
        before.created_revision,
        body.fill(last, revision),
        before.labels,
        before.owners,
        before.fields,
    )
