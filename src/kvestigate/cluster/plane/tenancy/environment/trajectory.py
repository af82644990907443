"""GET /events: every change of a plane in order, with its actor; as a list or as a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence

from msgspec import UNSET, Raw, Struct, UnsetType

from kvestigate import errors
from kvestigate.cluster.plane.model.metadata import micro_timestamp
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import Compacted, StoreError
from kvestigate.cluster.plane.store.model import Change, ResourceKey
from kvestigate.cluster.plane.store.watch import Subscription
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.environment.trimming import trimmed
from kvestigate.cluster.plane.tenancy.environment.visible import listing, visible
from kvestigate.cluster.plane.tenancy.timing import CLOCKS
from kvestigate.http.message import Response

NDJSON = "application/x-ndjson"
_AT_ONCE, _EFFORT = 512 * 1024, 16 * 1024
"""Bytes of changes that are written without a pause: what takes half a millisecond. Each change
takes as long as so many more."""
_LINES = 16
"""Changes that are sent together."""


class Event(Struct, frozen=True):
    """One change."""

    revision: int
    type: str
    """ADDED, MODIFIED or DELETED"""
    actor: str
    """The user who made it."""
    time: str
    group: str
    resource: str
    namespace: str
    name: str
    object: Raw | UnsetType = UNSET
    """After the change; of a deletion its last form."""


async def events(errand: Errand) -> Response:
    """Changes after `fromRevision`; with `follow` a stream that ends when the client leaves."""
    plane = errand.plane
    start = errand.info.integer("fromRevision")
    since = plane.compacted if start is None else start
    seen = _Seen(errand)
    try:
        if errand.flag("follow"):
            stream = _follow(plane.subscribe(None, since), seen)
            return Response(200, [("content-type", NDJSON)], stream, compress=False)
        changes = plane.events_since(since)
    except Compacted as error:
        raise errors.Expired(error.message) from None
    end = errand.info.integer("toRevision")
    if end is not None:
        changes = [change for change in changes if change.revision <= end]
    reached = plane.state.revision if end is None else min(end, plane.state.revision)
    if NDJSON in errand.request.headers.get("accept"):
        lines = [piece async for piece in seen.pieces(changes, b"\n")]
        return Response(200, [("content-type", NDJSON)], lines)
    head = {"cluster": plane.name, "fromRevision": since, "toRevision": reached}
    shown = [piece async for piece in seen.pieces(changes, b",")]
    pieces = (answer.encode(head)[:-1], b',"events":[', *shown[:-1], b"]}")
    return answer.json_bytes(pieces)


async def _follow(subscription: Subscription, seen: _Seen) -> AsyncIterator[bytes]:
    with subscription:
        try:
            async for changes in subscription:
                for start in range(0, len(changes), _LINES):
                    if start:
                        await seen.breathe()
                    if lines := seen.lines(changes[start : start + _LINES]):
                        yield lines
        except StoreError as error:
            status = errors.to_status(errors.Expired(error.message))
            yield answer.encode({"type": "ERROR", "object": status}) + b"\n"


class _Seen:
    """Which changes a request is shown, and in which form."""

    def __init__(self, errand: Errand) -> None:
        resources = errand.info.params.get("resource", "")
        self._chosen = visible(errand, errand.plane.state).kinds if resources else None
        self._with_objects = errand.info.params.get("objects", "") == "" or errand.flag("objects")
        self._errand = errand
        self._known: dict[ResourceKey, bool] = {CLOCKS: False}
        """Whether a resource may be listed; the plane's own clock is none."""

    def shows(self, change: Change) -> bool:
        key = change.resource
        if self._chosen is not None:
            return key in self._chosen
        known = self._known.get(key)
        if known is None:
            errand = self._errand
            known = self._known[key] = errand.may(errand.plane.state, listing(key))
        return known

    def breathe(self) -> Awaitable[None]:
        return self._errand.breathe()

    def lines(self, changes: Sequence[Change]) -> bytes:
        shown = [answer.encode(self.event(change)) for change in changes if self.shows(change)]
        return b"".join([line + b"\n" for line in shown])

    async def pieces(self, changes: Sequence[Change], end: bytes) -> AsyncIterator[bytes]:
        """Each change and what comes after it. While there are many, others have their turn."""
        work = 0
        for change in changes:
            if self.shows(change):
                piece = answer.encode(self.event(change))
                yield piece
                yield end
                work += len(piece)
            work += _EFFORT
            if work < _AT_ONCE:
                await self._errand.breathe()
            else:
                work = 0
                await self._errand.pause()

    def event(self, change: Change) -> Event:
        item = change.item
        return Event(
            change.revision,
            change.type.name,
            change.actor,
            micro_timestamp(change.time),
            *change.resource,
            item.namespace,
            item.name,
            Raw(trimmed(item)) if self._with_objects else UNSET,
        )
