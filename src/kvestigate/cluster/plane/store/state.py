"""Everything in a plane at one revision, as a value; and the step to the next revision. Pure.

A state is three levels of persistent maps: resource -> namespace -> name -> Item. A write copies
one short path and shares the rest, so a snapshot is a reference, a fork is a reference, and two
states that stem from each other are compared by walking only the namespaces that differ (`diff`).

A state never changes, so a write is a function from a state to the next one. A `Mutation` says what
a writer wants (put these bytes, remove that name) and which revision of the object it has seen.
`apply` is the only place that decides whether that still holds: an object that has another
revision, is missing, or is there already refuses the whole list, and there is nothing to roll back.

The result is a list of `Change`s, one revision each. A change has the object as it is now and, in
`previous`, as it was. That is all the history needs:

- `replay` builds the state again from changes that were read from a backend, which do not store
  `previous`: it is looked up in the state before each.
- `undo` goes backwards from a state by means of `previous`, to a revision that is still retained.
- `way_back` goes forwards to old contents: restoring a checkpoint is a list of ordinary mutations,
  which get new revisions. Watchers see them as changes like any other, and no revision is ever
  used twice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from weakref import ref

from immutables import Map

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
    fill,
    intern_labels,
    reopened,
)

_DRIFT = 64
"""Names that may come, go or change before beginning anew is cheaper than patching."""


class Bucket:
    """The objects of one resource in one namespace.

    Lists are ordered by name. The order is computed when first asked for, shared with the
    buckets that follow while the names stay the same, and patched rather than sorted anew
    when a few have come or gone. What readers make of the objects is handed on like that, too.
    """

    __slots__ = ("_drift", "_order", "derived", "items", "touched")

    def __init__(
        self,
        items: Map[str, Item],
        order: tuple[str, ...] | None = None,
        drift: tuple[str, ...] = (),
    ) -> None:
        self.items = items
        self._order = order
        self._drift = drift
        """Names that came or went since `_order` was right."""
        self.derived: ref[object] | None = None
        """For whoever makes something of all the objects: where it is, if it is still there, and
        in `touched` the names that came, went or changed since."""
        self.touched: tuple[str, ...] = ()

    def put(self, item: Item) -> Bucket:
        return self._next(self.items.set(item.name, item), item.name)

    def remove(self, name: str) -> Bucket:
        return self._next(self.items.delete(name), name)

    def _next(self, items: Map[str, Item], name: str) -> Bucket:
        """The bucket with these items; `name` is the one that came, went or changed."""
        order, drift = self._order, self._drift
        if order is not None and len(items) != len(self.items):
            order, drift = (order, (*drift, name)) if len(drift) < _DRIFT else (None, ())
        bucket = Bucket(items, order, drift)
        if self.derived is not None and len(self.touched) < _DRIFT:
            bucket.derived = self.derived
            bucket.touched = (*self.touched, name)
        return bucket

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        if self._order is None:
            self._order = tuple(sorted(self.items))
        elif self._drift:
            order = list(self._order)
            for name in set(self._drift):
                at = bisect_left(order, name)
                listed = at < len(order) and order[at] == name
                if listed and name not in self.items:
                    del order[at]
                elif not listed and name in self.items:
                    order.insert(at, name)
            self._order, self._drift = tuple(order), ()
        return self._order

    def sorted(self, after: str = "") -> Iterator[Item]:
        """The items by name, those that come after `after`."""
        names = self.names()
        items = self.items
        start = bisect_right(names, after) if after else 0
        return (items[name] for name in islice(names, start, None))


_NOTHING: Map[str, Item] = Map()
_EMPTY_BUCKET = Bucket(_NOTHING, ())


class Collection:
    """The objects of one resource, by namespace (`""` when it has none)."""

    __slots__ = ("__weakref__", "_count", "_order", "buckets")

    def __init__(
        self, buckets: Map[str, Bucket], count: int, order: tuple[str, ...] | None = None
    ) -> None:
        self.buckets = buckets
        self._count = count
        self._order = order

    def __len__(self) -> int:
        return self._count

    def get(self, namespace: str, name: str) -> Item | None:
        bucket = self.buckets.get(namespace)
        return None if bucket is None else bucket.items.get(name)

    def namespaces(self) -> tuple[str, ...]:
        """Those that hold an object, sorted."""
        if self._order is None:
            self._order = tuple(sorted(self.buckets))
        return self._order

    def items(
        self, namespace: str | None = None, after: tuple[str, str] | None = None
    ) -> Iterator[Item]:
        """By namespace, then name; of one namespace or all; only those after a given key."""
        if namespace is not None:
            name = after[1] if after else ""
            yield from self.buckets.get(namespace, _EMPTY_BUCKET).sorted(name)
            return
        last, name = after or ("", "")
        namespaces = self.namespaces()
        for each in islice(namespaces, bisect_left(namespaces, last), None):
            yield from self.buckets[each].sorted(name if each == last else "")

    def count_after(self, namespace: str | None, after: tuple[str, str]) -> int:
        """How many come after a key in `items(namespace)`, without walking them."""
        last, name = after
        count = 0
        if namespace is None:
            later = self.namespaces()[bisect_right(self.namespaces(), last) :]
            count = sum(len(self.buckets[each].items) for each in later)
        names = self.buckets.get(last, _EMPTY_BUCKET).names()
        return count + len(names) - bisect_right(names, name)

    def count(self, namespace: str | None = None) -> int:
        if namespace is None:
            return self._count
        return len(self.buckets.get(namespace, _EMPTY_BUCKET).items)

    def put(self, item: Item) -> Collection:
        old = self.buckets.get(item.namespace)
        if old is None:
            bucket = _EMPTY_BUCKET.put(item)
            return Collection(self.buckets.set(item.namespace, bucket), self._count + 1)
        bucket = old.put(item)
        count = self._count + len(bucket.items) - len(old.items)
        return Collection(self.buckets.set(item.namespace, bucket), count, self._order)

    def remove(self, namespace: str, name: str) -> Collection:
        bucket = self.buckets[namespace].remove(name)
        if not bucket.items:
            return Collection(self.buckets.delete(namespace), self._count - 1)
        return Collection(self.buckets.set(namespace, bucket), self._count - 1, self._order)


_NO_BUCKETS: Map[str, Bucket] = Map()
EMPTY_COLLECTION = Collection(_NO_BUCKETS, 0, ())
_NO_COLLECTIONS: Map[ResourceKey, Collection] = Map()


class PlaneState:
    """A plane at one revision. Holding it keeps it; it never changes."""

    __slots__ = ("__weakref__", "collections", "revision")

    def __init__(
        self, revision: int = 0, collections: Map[ResourceKey, Collection] = _NO_COLLECTIONS
    ) -> None:
        self.revision = revision
        self.collections = collections

    def collection(self, resource: ResourceKey) -> Collection:
        return self.collections.get(resource, EMPTY_COLLECTION)

    def get(self, resource: ResourceKey, namespace: str, name: str) -> Item | None:
        collection = self.collections.get(resource)
        return None if collection is None else collection.get(namespace, name)

    def __len__(self) -> int:
        return sum(map(len, self.collections.values()))

    def __iter__(self) -> Iterator[tuple[ResourceKey, Item]]:
        """Every object, by resource, namespace and name."""
        for resource in sorted(self.collections):
            for item in self.collections[resource].items():
                yield resource, item

    def put(self, resource: ResourceKey, item: Item, revision: int | None = None) -> PlaneState:
        """The state after this write, at the item's revision unless another is given."""
        collection = self.collection(resource).put(item)
        collections = self.collections.set(resource, collection)
        return PlaneState(item.revision if revision is None else revision, collections)

    def remove(self, resource: ResourceKey, namespace: str, name: str, revision: int) -> PlaneState:
        collection = self.collections[resource].remove(namespace, name)
        if not len(collection):
            return PlaneState(revision, self.collections.delete(resource))
        return PlaneState(revision, self.collections.set(resource, collection))


EMPTY = PlaneState()


class Difference(NamedTuple):
    """One object that is not the same on both sides; None where it is absent."""

    resource: ResourceKey
    before: Item | None
    after: Item | None


def diff(before: PlaneState, after: PlaneState) -> Iterator[Difference]:
    """By resource, namespace and name. What both sides share is recognised, not walked."""
    for resource in sorted({*before.collections, *after.collections}):
        old = before.collections.get(resource, EMPTY_COLLECTION)
        new = after.collections.get(resource, EMPTY_COLLECTION)
        if old is not new:
            yield from _of_collections(resource, old, new)


def _of_collections(
    resource: ResourceKey, before: Collection, after: Collection
) -> Iterator[Difference]:
    for namespace in sorted({*before.buckets, *after.buckets}):
        old, new = before.buckets.get(namespace), after.buckets.get(namespace)
        if old is not new:
            yield from _of_buckets(resource, old, new)


def _of_buckets(
    resource: ResourceKey, before: Bucket | None, after: Bucket | None
) -> Iterator[Difference]:
    old = before.items if before is not None else {}
    new = after.items if after is not None else {}
    changed = {name for name, item in new.items() if old.get(name) is not item}
    changed.update(name for name in old if name not in new)
    for name in sorted(changed):
        was, now = old.get(name), new.get(name)
        # After a restart equal objects may be two values; the bytes carry the revision.
        if was is None or now is None or was.data != now.data:
            yield Difference(resource, was, now)


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
        reopened(wanted.data, wanted.revision),
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
        fill(mutation.body, revision),
        intern_labels(mutation.labels),
        mutation.owners,
        mutation.fields,
    )
    kind = ChangeType.ADDED if before is None else ChangeType.MODIFIED
    return Change(revision, kind, resource, item, before, actor, now)


def _last_form(mutation: Remove, before: Item, revision: int) -> Item:
    last = mutation.body
    if last is None:
        last = reopened(before.data, before.revision)
    return Item(
        before.namespace,
        before.name,
        before.uid,
        revision,
        before.created_revision,
        fill(last, revision),
        before.labels,
        before.owners,
        before.fields,
    )
