"""GET /snapshot: everything in a plane at one revision, in one answer.

It is put together from the stored bytes of a state that never changes, so it is consistent
whatever is written meanwhile, and nothing is parsed.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from kvestigate.plane import answer, objects
from kvestigate.plane.environment.errand import Errand
from kvestigate.plane.environment.trimming import locate, trim
from kvestigate.plane.environment.visible import Visible, visible
from kvestigate.plane.kinds.kind import Kind
from kvestigate.plane.metadata import micro_timestamp
from kvestigate.plane.store.model import ResourceKey
from kvestigate.plane.store.state import Collection, PlaneState
from kvestigate.wire.message import Response


async def snapshot(errand: Errand) -> Response:
    include_empty = errand.flag("includeEmpty")
    errand.flag("warm")  # whatever is served is in memory: there is nothing to warm
    state = errand.plane.state
    time = micro_timestamp(errand.clock.now())
    seen = visible(errand, state)
    pieces = document(errand.plane.name, time, state, seen, include_empty=include_empty)
    headers = [
        ("cache-control", "no-cache, private"),
        ("content-type", "application/json"),
        ("x-snapshot-cluster", errand.plane.name),
        ("x-snapshot-time", time),
    ]
    # Compressing would take longer than everything else together.
    return Response(200, headers, b"".join(pieces), compress=False)


def document(
    cluster: str, time: str, state: PlaneState, seen: Visible, *, include_empty: bool
) -> list[bytes]:
    """The pieces of the answer. Pure."""
    head = {
        "cluster": cluster,
        "snapshotTime": time,
        "resourceVersion": str(state.revision),
        "liveResources": len(seen.kinds),
    }
    if seen.hidden:
        head["omitted"] = [{"group": group, "resource": plural} for group, plural in seen.hidden]
    pieces = [answer.encode(head)[:-1], b',"resources":[']
    first = True
    for key, kind in seen.kinds.items():
        collection = state.collection(key)
        if not len(collection) and not include_empty:
            continue
        if not first:
            pieces.append(b",")
        first = False
        pieces += _resource(key, kind, collection)
    pieces.append(b"]}")
    return pieces


def _resource(key: ResourceKey, kind: Kind, collection: Collection) -> list[bytes]:
    group, plural = key
    head = {"group": group, "resource": plural, "synced": True, "itemCount": len(collection)}
    return [answer.encode(head)[:-1], b',"items":[', _items(kind, collection), b"]}"]


def _items(kind: Kind, collection: Collection) -> bytes:
    """The objects with commas between them: made once for all states that have the collection."""
    if not kind.shown_as_stored:
        return b",".join([trim(objects.shown(item, kind)) for item in collection.items()])
    return _KNOWN.get(collection) or _KNOWN.keep(collection, _joined(collection))


def _joined(collection: Collection) -> bytes:
    parts: list[bytes] = []
    for item in collection.items():
        data = item.data
        start, end = item.cut or locate(item)
        if start == end:
            parts += (data, b",")
        else:
            parts += (data[:start], data[end:], b",")
    return b"".join(parts[:-1])


class _Known:
    """What was joined, for as long as the collections live and there is room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._joined: WeakKeyDictionary[Collection, bytes] = WeakKeyDictionary()

    def get(self, collection: Collection) -> bytes | None:
        return self._joined.get(collection)

    def keep(self, collection: Collection, joined: bytes) -> bytes:
        self._size += len(joined)  # of those that have gone, too: that only clears too early
        if self._size > self._limit:
            self._joined.clear()
            self._size = len(joined)
        self._joined[collection] = joined
        return joined


_KNOWN = _Known(64 * 2**20)
