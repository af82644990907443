"""Stored objects without their managedFields, cut out of the bytes instead of decoded. Pure."""

from __future__ import annotations

from msgspec import Raw, Struct, json
from msgspec.structs import force_setattr

from kvestigate.cluster.plane.store.model import Item

Cut = tuple[int, int]
"""Where the part to leave out begins and ends; equal when there is none."""

_NONE: Cut = (0, 0)


class _Object(Struct):
    metadata: Raw


class _Metadata(Struct, rename="camel"):
    managed_fields: Raw = Raw(b"")


_object = json.Decoder(_Object)
_metadata = json.Decoder(_Metadata)


def trimmed(item: Item) -> bytes:
    """The object without them."""
    start, end = item.cut or locate(item)
    return item.data if start == end else item.data[:start] + item.data[end:]


def locate(item: Item) -> Cut:
    """Where to cut; looked for once for each version of an object."""
    cut = item.cut
    if cut is None:
        cut = find(item.data)
        force_setattr(item, "cut", cut)
    return cut


def trim(data: bytes) -> bytes:
    start, end = find(data)
    return data[:start] + data[end:]


def find(data: bytes) -> Cut:
    fields = bytes(_metadata.decode(_object.decode(data).metadata).managed_fields)
    if not fields:
        return _NONE
    # Nothing before it can look the same: quotes inside strings are escaped, and whatever else
    # may have a key of that name in metadata (labels, annotations) has strings as values.
    key = b'"managedFields":' + fields
    start = data.find(key)
    if start < 0:
        return _NONE
    end = start + len(key)
    if data[end : end + 1] == b",":
        return start, end + 1
    return (start - 1, end) if data[start - 1 : start] == b"," else (start, end)
