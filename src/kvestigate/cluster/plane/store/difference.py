"""What differs between two states of a plane, or between two planes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kvestigate.cluster.plane.store.model import Item, ResourceKey
from kvestigate.cluster.plane.store.state import EMPTY_COLLECTION, Bucket, Collection, PlaneState


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
