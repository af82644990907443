"""GET /snapshot: everything in a plane at one revision, in one answer.

It is put together from the stored bytes of a state that never changes, so it is consistent
whatever is written meanwhile, and nothing is parsed.
"""

from __future__ import annotations

from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.model.metadata import micro_timestamp
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import ResourceKey
from kvestigate.cluster.plane.store.state import EMPTY_COLLECTION, Collection, PlaneState
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.environment.texts import Texts
from kvestigate.cluster.plane.tenancy.environment.trimming import trim
from kvestigate.cluster.plane.tenancy.environment.visible import Visible, visible
from kvestigate.http.message import Response


async def snapshot(errand: Errand) -> Response:
    include_empty = errand.flag("includeEmpty")
    errand.flag("warm")  # whatever is served is in memory: there is nothing to warm
    state = errand.plane.state
    time = micro_timestamp(errand.clock.now())
    seen = visible(errand, state)
    await errand.breathe()
    pieces = await document(errand, time, state, seen, include_empty=include_empty)
    headers = [
        ("cache-control", "no-cache, private"),
        ("content-type", "application/json"),
        ("x-snapshot-cluster", errand.plane.name),
        ("x-snapshot-time", time),
    ]
    # Compressing would take longer than everything else together.
    return Response(200, headers, pieces, compress=False)


async def document(
    errand: Errand, time: str, state: PlaneState, seen: Visible, *, include_empty: bool
) -> list[bytes]:
    """The pieces of the answer."""
    head = {
        "cluster": errand.plane.name,
        "snapshotTime": time,
        "resourceVersion": str(state.revision),
        "liveResources": len(seen.kinds),
    }
    if seen.hidden:
        head["omitted"] = [{"group": group, "resource": plural} for group, plural in seen.hidden]
    pieces = [answer.encode(head)[:-1], b',"resources":[']
    first = True
    for key, kind in seen.kinds.items():
        collection = state.collections.get(key)
        if collection is None:
            if not include_empty:
                continue
            collection = EMPTY_COLLECTION
        if not first:
            pieces.append(b",")
        first = False
        pieces += _start(key, collection)
        pieces += await _items(errand, kind, collection)
        pieces.append(b"]}")
        await errand.breathe()
    pieces.append(b"]}")
    return pieces


def _start(key: ResourceKey, collection: Collection) -> tuple[bytes, bytes]:
    group, plural = key
    head = {"group": group, "resource": plural, "synced": True, "itemCount": len(collection)}
    return answer.encode(head)[:-1], b',"items":['


async def _items(errand: Errand, kind: Kind, collection: Collection) -> list[bytes]:
    """The objects, with commas between them."""
    if kind.shown_as_stored:
        buckets = [collection.buckets[name] for name in collection.namespaces()]
        texts = [await _TEXTS.of(bucket, errand.pause) for bucket in buckets]
        parts = [segment for text in texts for segment in text.segments]
    else:
        parts = []
        for item in collection.items():
            parts.append(trim(objects.shown(item, kind)) + b",")
            await errand.breathe()
    if parts:
        parts[-1] = parts[-1][:-1]
    return parts


_TEXTS = Texts()
