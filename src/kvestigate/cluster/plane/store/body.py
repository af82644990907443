"""The one part of an object that the store itself writes: its revision.

A writer does not know the revision its object will get, so it sends the JSON with a hole: one
NUL byte between the quotes of metadata.resourceVersion. JSON escapes NUL inside strings, so
the byte cannot occur anywhere else and filling the hole needs no parser.

    {"metadata":{"name":"a","resourceVersion":"\\0"}}
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, json

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
