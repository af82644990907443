"""Objects as dicts and as the bytes that are stored and sent. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.store.model import HOLE, Item, Put, Remove
from kvestigate.errors import RequestEntityTooLarge

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def read(item: Item) -> Object:
    """A fresh dict of a stored object; the caller may change it."""
    obj: Object = _decode(item.data)
    return obj


def shown(item: Item, served: Kind) -> bytes:
    """A stored object's JSON at the version in which it is served."""
    if served.shown_as_stored:
        return item.data
    if served.conversion is not None and not item.data.startswith(served.head):
        return item.data  # what only a webhook could convert stays as it is
    obj = served.from_stored(read(item))
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return served.head + _encode(rest)[1:]


def body(obj: Object, kind: Kind) -> bytes:
    """The bytes to store: kind and apiVersion first, a hole where the revision goes."""
    metadata = {**obj["metadata"], "resourceVersion": HOLE}
    rest = {"metadata": metadata, **obj}
    rest["metadata"] = metadata
    rest.pop("kind", None)
    rest.pop("apiVersion", None)
    encoded = kind.head + _encode(rest)[1:]
    if len(encoded) > MOST_BYTES:
        raise RequestEntityTooLarge(f"the object would be larger than {MOST_BYTES} bytes")
    return encoded


MOST_BYTES = 6 * 1024 * 1024
"""Of a stored object. A request has at most half of this, but patches add to what is there, and
each manager of server-side apply adds a list of its fields."""


def put(obj: Object, kind: Kind, expect: int) -> Put:
    meta = obj["metadata"]
    return Put(
        kind.key,
        meta.get("namespace", ""),
        meta["name"],
        meta["uid"],
        body(obj, kind),
        expect,
        meta.get("labels") or {},
        tuple([owner["uid"] for owner in meta.get("ownerReferences") or ()]),
        kind.fields(obj),
    )


def fields_of(item: Item, kind: Kind) -> Mapping[str, Any]:
    """What field selectors see of a stored object, without parsing it if possible."""
    known = {"metadata.name": item.name, "metadata.namespace": item.namespace}
    fields = item.fields if kind.indexes_fields else kind.fields(kind.from_stored(read(item)))
    known.update(zip(kind.field_names, fields, strict=False))
    return known


def removal(obj: Object, kind: Kind, expect: int) -> Remove:
    meta = obj["metadata"]
    return Remove(kind.key, meta.get("namespace", ""), meta["name"], expect, body(obj, kind))


def differ(obj: Object, old: Object) -> bool:
    """Whether two objects differ in more than their metadata."""
    if len(obj) != len(old):
        return True
    for name, value in obj.items():
        if name != "metadata" and (name not in old or old[name] != value):
            return True
    return False


def same(obj: Object, old: Object, item: Item) -> bool:
    """Whether writing this object would change nothing but its revision.

    `old` is what was read of the item. It may share parts with the object, and so differ less
    from it than what is stored, but never more.
    """
    new = _unrevised(obj)
    return new == _unrevised(old) and new == _unrevised(read(item))


def _unrevised(obj: Object) -> Object:
    meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": meta}
