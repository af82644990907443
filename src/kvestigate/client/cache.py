"""The one cache of API objects: current views by key, with indexes, true to its owner's writes.

Everything that follows a resource (controllers, the scheduler, nodes, the task keeper) reads from
this cache and is told of changes by it. Where the objects come from is not its business: an
informer fills it from a list and a watch, or from the history of a plane in the same process.

The hard part is a program that writes what it reads. A watch delivers a change a moment after the
write was answered. A ReplicaSet controller that looks at its pods in that moment counts three
instead of four and creates one too many. client-go solves this with "expectations": each
controller counts the events that it still waits for, and does nothing until they came or a
timeout passed. That is a second state machine in every controller. Here the answer to a write
enters the cache at once (`assume`): one rule in one place, which controllers do not know about.

What makes it safe is that versions of one resource are numbers that grow and that a watch delivers
in order:

* An event that is older than the assumed version of its object is ignored.
* A write that is older than what the watch has already delivered is not assumed: the watch has
  told of it, and perhaps of its deletion.
* When the watch passes the version of an assumed object without a word about it, the object came
  and went between two connections: it is dropped.
* A list replaces everything but what was assumed after the version of the list.
* A deletion that the server accepted marks the object as terminating (`assume_doomed`) until the
  watch tells of its end, however many older states arrive before that.

A server whose versions are not numbers gets a cache without assumptions, which is what client-go
has. Two caches, one above the other (the watch's and the controllers'), were tried first: every
object was held and compared twice, and a new list dropped assumed objects that it did contain.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

from kvestigate.kube.keys import Key as Key
from kvestigate.kube.keys import Named as Named
from kvestigate.kube.keys import key_of as key_of
from kvestigate.kube.sharing import Pool

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

_YOUNG = 1024
"""Objects that are left alone after their last change. Most change a few times when they are new
and then hardly ever: what they have in common with others is worth looking for only then."""


V = TypeVar("V", bound=Named)


class Change(msgspec.Struct, Generic[V], frozen=True):
    """What happened to one object of the cache."""

    type: ChangeType
    key: Key
    old: V | None
    """None when it was added."""
    new: V | None
    """None when it was deleted."""

    @property
    def views(self) -> list[V]:
        """The object after and before the change: both decide whom the change concerns."""
        return [view for view in (self.new, self.old) if view is not None]


Handler = Callable[[Change[V]], None]
Values = Callable[[V], tuple[str, ...]]
"""The values under which an index keeps an object."""


class Cache(Generic[V]):
    """The objects of one resource."""

    def __init__(self) -> None:
        self._objects: dict[Key, V] = {}
        self._handlers: list[Handler[V]] = []
        self._index_values: dict[str, Values[V]] = {}
        self._indexes: dict[str, _Index[V]] = {}
        """The indexes that were asked for: most never are, of most resources."""
        self._seen = 0
        """The newest version that the source has delivered."""
        self._assumed: dict[Key, int] = {}
        """Versions of own writes that the source has not delivered yet, the oldest first."""
        self._doomed: dict[str, datetime] = {}
        """When the deletion of an object was accepted, by uid."""
        self._settling: OrderedDict[Key, None] | None = None
        self._pool: Pool | None = None

    # -- reading ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[V]:
        return iter(list(self._objects.values()))

    def get(self, key: Key) -> V | None:
        return self._objects.get(key)

    def find(self, index: str, value: str) -> list[V]:
        """The objects that an index keeps under a value."""
        entries = self._indexes.get(index)
        if entries is None:
            entries = self._indexes[index] = _Index(self._index_values[index])
            for key, view in self._objects.items():
                entries.put(key, view)
        return entries.find(value)

    def add_index(self, name: str, values: Values[V]) -> None:
        """Let `find` look objects up by `values`; of two indexes with one name the first wins."""
        self._index_values.setdefault(name, values)

    def subscribe(self, handler: Handler[V]) -> Callable[[], None]:
        """Tell `handler` of every object in the cache and then of every change.

        Returns the function that ends the subscription. Handlers run on the event loop between
        two events: they note keys, they do no work.
        """
        for key, view in list(self._objects.items()):
            handler(Change("ADDED", key, None, view))
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    # -- what the source delivers ----------------------------------------------------------

    def replace(self, views: Iterable[V], version: str) -> None:
        """A list shows all objects as of `version`; handlers are told only what differs."""
        listed = {key_of(view): view for view in views}
        listed_at = _number(version)
        for key in [key for key in self._objects if key not in listed]:
            if self._assumed.get(key, 0) <= listed_at:
                self._assumed.pop(key, None)
                self._drop(key)
        for view in listed.values():
            self._accept("ADDED", view)
        self._seen = listed_at

    def apply(self, type: ChangeType, view: V) -> None:
        """A watch delivers one change."""
        self._accept(type, view)
        self._seen = max(self._seen, version_of(view))
        assumed = self._assumed
        # Versions were assumed in about their order, so the oldest are in front.
        while assumed and (passed := next(iter(assumed))) and assumed[passed] < self._seen:
            del assumed[passed]
            if passed in self._objects:
                self._drop(passed)

    def clear(self) -> None:
        """The resource is no longer served: all its objects are gone."""
        self.replace((), "")
        self._assumed.clear()

    # -- what the server answered to own writes --------------------------------------------

    def assume(self, view: V) -> None:
        """The server answered a write with this object."""
        key, version = key_of(view), version_of(view)
        if version <= self._seen:
            return
        known = self._objects.get(key)
        if known is None or version_of(known) < version:
            self._assumed.pop(key, None)
            self._assumed[key] = version
            self._put(key, known, view)

    def assume_doomed(self, view: V, now: datetime) -> None:
        """The server accepted the deletion of this object."""
        key = key_of(view)
        known = self._objects.get(key)
        if known is None or known.metadata.uid != view.metadata.uid:
            return
        if known.metadata.deletion_timestamp is None:
            self._doomed[view.metadata.uid] = now
            self._put(key, known, known)

    # -- parts -----------------------------------------------------------------------------

    def _accept(self, type: ChangeType, view: V) -> None:
        key = key_of(view)
        if type == "DELETED":
            self._doomed.pop(view.metadata.uid, None)
        if key in self._assumed:
            if version_of(view) < self._assumed[key]:
                return  # older than the own write
            del self._assumed[key]
        known = self._objects.get(key)
        if type == "DELETED":
            if known is not None:
                # The server's last state is newer than ours: handlers see it as the old one.
                self._drop(key, view)
        elif known is None or known.metadata.resource_version != view.metadata.resource_version:
            self._put(key, known, view)

    def _put(self, key: Key, old: V | None, view: V) -> None:
        doomed_at = self._doomed.get(view.metadata.uid)
        if doomed_at is not None and view.metadata.deletion_timestamp is None:
            view = _terminating(view, doomed_at)
        self._objects[key] = view
        for index in self._indexes.values():
            if old is None:
                index.put(key, view)
            else:
                index.replace(key, old, view)
        if len(self._objects) > _YOUNG:
            self._settle(key)
        self._tell(Change("ADDED" if old is None else "MODIFIED", key, old, view))

    def _drop(self, key: Key, last: V | None = None) -> None:
        known = self._objects.pop(key)
        for index in self._indexes.values():
            index.drop(key, known)
        self._tell(Change("DELETED", key, known if last is None else last, None))

    def _tell(self, change: Change[V]) -> None:
        for handler in list(self._handlers):
            handler(change)

    def _settle(self, key: Key) -> None:
        """In a large cache, let the object that has not changed for longest share its parts."""
        if self._settling is None or self._pool is None:
            self._settling, self._pool = OrderedDict(), Pool()
        self._settling[key] = None
        self._settling.move_to_end(key)
        if len(self._settling) > _YOUNG:
            settled, _ = self._settling.popitem(last=False)
            view = self._objects.get(settled)
            if view is not None:
                self._pool.share(cast(msgspec.Struct, view))


class _Index(Generic[V]):
    """Objects by the values that a function gives them."""

    __slots__ = ("_entries", "_values")

    def __init__(self, values: Values[V]) -> None:
        self._values = values
        self._entries: dict[str, dict[Key, V]] = {}

    def find(self, value: str) -> list[V]:
        return list(self._entries.get(value, {}).values())

    def put(self, key: Key, view: V) -> None:
        for value in self._values(view):
            self._entries.setdefault(value, {})[key] = view

    def replace(self, key: Key, old: V, view: V) -> None:
        values = self._values(view)
        if values != self._values(old):
            self.drop(key, old)
            self.put(key, view)
        else:
            for value in values:
                self._entries[value][key] = view

    def drop(self, key: Key, view: V) -> None:
        for value in self._values(view):
            entry = self._entries.get(value)
            if entry is not None and entry.pop(key, None) is not None and not entry:
                del self._entries[value]


def version_of(view: Named) -> int:
    """The version of an object as a number; 0 for a server whose versions are not numbers."""
    return _number(view.metadata.resource_version)


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _terminating(view: V, since: datetime) -> V:
    metadata = msgspec.structs.replace(view.metadata, deletion_timestamp=since)
    return cast(V, msgspec.structs.replace(cast(Any, view), metadata=metadata))
