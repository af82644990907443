"""What controllers know of the world: current objects by key, indexed, and true to own writes.

A watch tells of a write a moment after the write was answered. A controller that looked at its
cache in that moment would do its work twice, so what the server answers to a write enters the
cache at once, and older news about that object is ignored. Versions decide: a watch delivers
them in order, so once it has passed a version, it has told of everything before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Generic, cast

import msgspec

from kvestigate.client.informer import Key, Named, V, key_of


class Change(msgspec.Struct, Generic[V], frozen=True):
    """What happened to one object."""

    key: Key
    old: V | None
    """None when it is new."""
    new: V | None
    """None when it is gone."""

    @property
    def views(self) -> list[V]:
        """The object after and before: both count for who has to look again."""
        return [view for view in (self.new, self.old) if view is not None]


Handler = Callable[[Change[V]], None]
Values = Callable[[V], tuple[str, ...]]


class _Index(Generic[V]):
    __slots__ = ("_found", "_values")

    def __init__(self, values: Values[V]) -> None:
        self._values = values
        self._found: dict[str, dict[Key, V]] = {}

    def find(self, value: str) -> list[V]:
        return list(self._found.get(value, {}).values())

    def put(self, key: Key, view: V) -> None:
        for value in self._values(view):
            self._found.setdefault(value, {})[key] = view

    def replace(self, key: Key, old: V, view: V) -> None:
        values = self._values(view)
        if values != self._values(old):
            self.drop(key, old)
            self.put(key, view)
        else:
            for value in values:
                self._found[value][key] = view

    def drop(self, key: Key, view: V) -> None:
        for value in self._values(view):
            found = self._found.get(value)
            if found is not None and found.pop(key, None) is not None and not found:
                del self._found[value]


class Cache(Generic[V]):
    """The objects of one resource, of one API server."""

    __slots__ = ("_assumed", "_doomed", "_handlers", "_indexes", "_known", "_objects", "_seen")

    def __init__(self) -> None:
        self._objects: dict[Key, V] = {}
        self._known: dict[str, Values[V]] = {}
        """What each index goes by."""
        self._indexes: dict[str, _Index[V]] = {}
        """Those that were looked at: most never are, of most resources."""
        self._handlers: list[Handler[V]] = []
        self._seen = 0
        self._assumed: dict[Key, int] = {}
        self._doomed: dict[str, datetime] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[V]:
        return iter(list(self._objects.values()))

    def items(self) -> list[tuple[Key, V]]:
        return list(self._objects.items())

    def get(self, key: Key) -> V | None:
        return self._objects.get(key)

    def find(self, index: str, value: str) -> list[V]:
        """The objects that an index keeps under a value."""
        found = self._indexes.get(index)
        if found is None:
            found = self._indexes[index] = _Index(self._known[index])
            for key, view in self._objects.items():
                found.put(key, view)
        return found.find(value)

    def add_index(self, name: str, values: Values[V]) -> None:
        """Keep objects by what `values` says of them; of one name, the first wins."""
        self._known.setdefault(name, values)

    def subscribe(self, handler: Handler[V]) -> None:
        self._handlers.append(handler)

    # -- what a watch tells ----------------------------------------------------------------

    def learn(self, key: Key, view: V) -> None:
        """A watch or list shows an object."""
        known, version = self._objects.get(key), version_of(view)
        # One that is known from an own write was told of then.
        if known is None or version_of(known) < version or not version:
            self._put(key, view)
        self._confirm(key, view)

    def learn_gone(self, key: Key, last: V) -> None:
        """A watch or list no longer shows an object, `last` seen like that."""
        known = self._objects.get(key)
        if known is not None and known.metadata.uid == last.metadata.uid:
            self._drop(key, known)
        self._doomed.pop(last.metadata.uid, None)
        self._confirm(key, last)

    # -- what own writes were answered -----------------------------------------------------

    def assume(self, view: V) -> None:
        """The server answered a write with this object."""
        key, version = key_of(view), version_of(view)
        if version <= self._seen:
            return  # the watch is already past it
        known = self._objects.get(key)
        if known is None or version_of(known) < version:
            self._assumed.pop(key, None)
            self._assumed[key] = version
            self._put(key, view)

    def assume_doomed(self, view: V, now: datetime) -> None:
        """The server accepted the deletion of this object."""
        key = key_of(view)
        known = self._objects.get(key)
        if known is None or known.metadata.uid != view.metadata.uid:
            return
        if known.metadata.deletion_timestamp is None:
            self._doomed[view.metadata.uid] = now
            self._put(key, known)

    # -- parts -----------------------------------------------------------------------------

    def _confirm(self, key: Key, view: V) -> None:
        seen = self._seen = max(self._seen, version_of(view))
        assumed = self._assumed
        assumed.pop(key, None)
        # Passed by the watch without a word: it came and went while nobody watched. Versions
        # were assumed in about their order, so the oldest are in front.
        while assumed and (ghost := next(iter(assumed))) and assumed[ghost] < seen:
            del assumed[ghost]
            if (known := self._objects.get(ghost)) is not None:
                self._drop(ghost, known)

    def _put(self, key: Key, view: V) -> None:
        since = self._doomed.get(view.metadata.uid)
        if since is not None and view.metadata.deletion_timestamp is None:
            view = _leaving(view, since)
        old = self._objects.get(key)
        self._objects[key] = view
        for index in self._indexes.values():
            if old is None:
                index.put(key, view)
            else:
                index.replace(key, old, view)
        self._tell(Change(key, old, view))

    def _drop(self, key: Key, old: V) -> None:
        del self._objects[key]
        for index in self._indexes.values():
            index.drop(key, old)
        self._tell(Change(key, old, None))

    def _tell(self, change: Change[V]) -> None:
        for handler in self._handlers:
            handler(change)


def version_of(view: Named) -> int:
    """Versions of one resource are numbers that grow; 0 for a server that has others."""
    version = view.metadata.resource_version
    return int(version) if version.isdecimal() else 0


def _leaving(view: V, since: datetime) -> V:
    metadata = msgspec.structs.replace(view.metadata, deletion_timestamp=since)
    return cast(V, msgspec.structs.replace(cast(Any, view), metadata=metadata))
