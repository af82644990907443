"""The values of the store: an object at one revision, a wish to change one, a change that was."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from msgspec import Raw, Struct, json

ResourceKey: TypeAlias = tuple[str, str]
"""(group, plural): `("", "pods")`, `("apps", "deployments")`. Versions share their objects."""

ABSENT = 0
"""As an expected revision: the object must not be there."""


class Labels(dict[str, str]):
    """The labels of an object; equal ones are one value, so it must never be changed."""

    __slots__ = ("__weakref__",)


_labels: WeakValueDictionary[tuple[tuple[str, str], ...], Labels] = WeakValueDictionary()
NO_LABELS = Labels()


def intern_labels(labels: Mapping[str, str]) -> Labels:
    """The one shared copy: thousands of pods of a workload carry the same labels."""
    if isinstance(labels, Labels):
        return labels
    if not labels:
        return NO_LABELS
    key = tuple(sorted(labels.items()))
    known = _labels.get(key)
    if known is None:
        known = _labels[key] = Labels(labels)
    return known


class Item(Struct, frozen=True, gc=False):
    """One object at one revision. Holds no reference that could close a cycle."""

    namespace: str
    """Empty for cluster-scoped objects."""
    name: str
    uid: str
    revision: int
    created_revision: int
    data: bytes
    """The complete object as JSON, metadata.resourceVersion included."""
    labels: Labels = NO_LABELS
    owners: tuple[str, ...] = ()
    """uids of metadata.ownerReferences"""
    fields: tuple[str, ...] = ()
    """Values for field selectors, in the order that the writer chose for this resource."""
    cut: tuple[int, int] | None = None
    """For whoever leaves managedFields out: where they are in `data`, once somebody has looked."""


class ChangeType(enum.IntEnum):
    ADDED = 1
    MODIFIED = 2
    DELETED = 3


class Change(Struct, gc=False):
    """One step in the history of a plane."""

    revision: int
    type: ChangeType
    resource: ResourceKey
    item: Item
    """The object after the change; of a deletion its last form, at the deletion's revision."""
    previous: Item | None
    actor: str
    """Who did it: the user name of the request."""
    time: float
    """Unix seconds."""


class Put(Struct, frozen=True, gc=False):
    """Create or replace an object."""

    resource: ResourceKey
    namespace: str
    name: str
    uid: str
    body: bytes
    """The JSON with one NUL byte where the revision goes (see `HOLE`)."""
    expect: int = ABSENT
    """The revision to replace, or ABSENT to create."""
    labels: Mapping[str, str] = NO_LABELS
    owners: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


class Remove(Struct, frozen=True, gc=False):
    """Delete an object."""

    resource: ResourceKey
    namespace: str
    name: str
    expect: int
    body: bytes | None = None
    """Its last form, with a NUL for the revision; None: as it was."""


Mutation: TypeAlias = Put | Remove


def total_bytes(changes: Iterable[Change]) -> int:
    """What holding on to these changes costs, near enough: the payload outweighs the rest."""
    total = 0
    for change in changes:
        total += len(change.item.data) + 400
    return total


# The revision is the one part of an object that the store itself writes. A writer does not know the
# revision its object will get, so it sends the JSON with a hole: one NUL byte between the quotes of
# metadata.resourceVersion. JSON escapes NUL inside strings, so the byte cannot occur anywhere else,
# and filling the hole needs no parser.

HOLE = Raw(b'"\0"')
"""Put this as metadata.resourceVersion before encoding with msgspec."""

_object = json.Decoder(dict[str, Raw])


def fill(body: bytes, revision: int) -> bytes:
    return body.replace(b"\0", b"%d" % revision, 1)


def unfilled(body: bytes) -> bytes:
    """The object without a revision: one that was never stored."""
    return body.replace(b',"resourceVersion":"\0"', b"", 1)


def hollow(data: bytes) -> bytes:
    """Back from a stored object to a body, so that it can be written again."""
    parts: dict[str, Any] = dict(_object.decode(data))
    metadata = _object.decode(parts.get("metadata", b"{}"))
    metadata["resourceVersion"] = HOLE
    parts["metadata"] = metadata
    return json.encode(parts)


def reopened(data: bytes, revision: int) -> bytes:
    """The same of an object that is stored at a revision, most often without a parser."""
    filled = b'"resourceVersion":"%d"' % revision
    if data.count(filled) == 1:  # it is in there once at least
        return data.replace(filled, b'"resourceVersion":"\0"', 1)
    return hollow(data)
