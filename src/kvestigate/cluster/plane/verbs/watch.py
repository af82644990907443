"""watch: the changes of a resource as they happen, as a stream of JSON lines.

A watch is a subscription to the plane (`store.watch`) and a framer. The subscription delivers
batches of changes in order, without gap or repeat. The framer turns each change into the event
that this client has to see, in the form that it asked for (object, Table or metadata).

**Cost.** Informers of a busy cluster are a hundred watches of the same collection. Almost all of
them want every object as it is stored, so their events are the same bytes. The events of the
newest batch are framed and joined once for each watched namespace (`_SharedFrames`): a hundred
watches cost one framing. Watches with selectors, Tables or another API version get events of their
own.

**Selectors.** A change is MODIFIED in the store but ADDED for a watch when the object begins to
match its selector, and DELETED when the object ceases to. Such a DELETED event has the object
as the watch last saw it, at the revision at which it ceased to match.

**Start.** Without a resourceVersion the client first gets an ADDED event for each object that
exists, then the changes since. The subscription is opened before the first of them is sent, at
the revision of the same state, so no change falls between the two. From a revision that the
history no longer has, clients expect 200 and an ERROR event, not an error status.

**End.** Bookmarks tell a quiet client how far it is, so that its next watch can start from there.
One more is sent two seconds before the end. The deadline is counted in the time of the event
loop, not of the plane: the virtual clock of a plane may stand still, and such watches never ended.

**Fairness.** Ten thousand initial events, or a long history as rows of a Table, take longer
than other planes should wait. They are made in portions, with a pause after each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from kvestigate import errors
from kvestigate.cluster.plane.request import versions
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.negotiate import Form
from kvestigate.cluster.plane.request.selection import Selection, selection
from kvestigate.cluster.plane.response import answer, tables
from kvestigate.cluster.plane.store.errors import Compacted, StoreError
from kvestigate.cluster.plane.store.model import Change, ChangeType, Item, fill, hollow
from kvestigate.cluster.plane.store.watch import Subscription
from kvestigate.cluster.plane.verbs import converting
from kvestigate.http.message import Response

BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0
"""How long before its end a watch gets its last bookmark."""
DEFAULT_SECONDS = (1800, 3600)
"""A watch without timeoutSeconds ends at a random time in between, so that not all end together."""

_STORED_PORTION, _CONVERTED_PORTION = 100, 8
"""Events that are made without a pause: of objects as they are stored, or converted ones."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


async def watch(call: Call) -> Response:
    versions.check_watch(call.info)
    if call.form.form is Form.METADATA_LIST:
        raise answer.not_a_list()
    selected = selection(call.info, call.served)
    version = call.info.params.get("resourceVersion", "")
    state = call.plane.state
    initial: Iterator[Item] = iter(())
    from_now = version in ("", "0")
    since = state.revision if from_now else versions.parse(version, versions.FIELD)
    declines_initial = "sendInitialEvents" in call.info.params
    if call.info.flag("sendInitialEvents") or (from_now and not declines_initial):
        initial = state.collection(call.kind.key).items(selected.namespace or None)
        since = state.revision
    body: AsyncIterator[bytes]
    try:
        subscription = call.plane.subscribe(call.kind.key, since)
    except Compacted as error:
        body = _single_event(_error(errors.Expired(error.message)))
    else:
        body = _stream(call, selected, subscription, initial, since)
    return Response(200, [("content-type", "application/json")], body, compress=False)


async def _single_event(frame: bytes) -> AsyncIterator[bytes]:
    yield frame


async def _stream(
    call: Call,
    selected: Selection,
    subscription: Subscription,
    initial: Iterator[Item],
    since: int,
) -> AsyncIterator[bytes]:
    framer = _Framer(call, selected)
    bookmarks = call.info.flag("allowWatchBookmarks")
    time = asyncio.get_running_loop().time
    deadline = time() + _duration(call)
    with subscription:
        try:
            while items := list(islice(initial, framer.portion)):
                if frames := framer.added(await converting.all_shown(call, items)):
                    yield frames
                await call.pause()
            if call.info.flag("sendInitialEvents") and bookmarks:
                yield framer.bookmark(since, {INITIAL_EVENTS_END: "true"})
            subscription.remind(_until_bookmark(deadline - time()))
            async for changes in subscription:
                if changes:
                    for portion in framer.portions(changes):
                        await call.breathe()
                        if frames := framer.changes(await _shown(call, portion)):
                            yield frames
                    continue
                left = deadline - time()
                if left <= 0:
                    return
                subscription.remind(_until_bookmark(left))
                if bookmarks:
                    yield framer.bookmark(subscription.progress, {})
        except StoreError as error:
            yield _error(errors.Expired(error.message))
        except errors.ApiError as error:  # of a conversion webhook
            yield _error(error)


async def _shown(call: Call, changes: Sequence[Change]) -> Sequence[Change]:
    """Changes of objects at the version that the client speaks."""
    if call.served.conversion is None:
        return changes
    known = [item for each in changes for item in (each.item, each.previous) if item is not None]
    converted = dict(zip(map(id, known), await converting.all_shown(call, known), strict=True))
    return [
        replace(
            each,
            item=converted[id(each.item)],
            previous=None if each.previous is None else converted[id(each.previous)],
        )
        for each in changes
    ]


def _duration(call: Call) -> float:
    seconds = call.info.integer("timeoutSeconds")
    return float(seconds) if seconds else call.random.uniform(*DEFAULT_SECONDS)


def _until_bookmark(left: float) -> float:
    """Seconds to the next bookmark, or to the end, of a watch that ends in `left` seconds."""
    last = left - _LAST_BOOKMARK_SECONDS
    return min(last if last > 0 else left, BOOKMARK_SECONDS)


class _Framer:
    """Makes the events of one watch."""

    def __init__(self, call: Call, selected: Selection) -> None:
        self._call = call
        self._selected = selected
        as_stored = call.form.form is Form.OBJECT and call.served.shown_as_stored
        self._shares_frames = selected.everything and as_stored
        self.portion = _STORED_PORTION if as_stored else _CONVERTED_PORTION
        """Events to make without a pause."""
        self._headers = True
        """Whether a Table still has to name its columns: only the first one does."""

    def portions(self, changes: Sequence[Change]) -> Iterable[Sequence[Change]]:
        """A batch in portions; a small one as it is, because shared frames are kept by batch."""
        size = self.portion
        if len(changes) <= size:
            return (changes,)
        return (changes[start : start + size] for start in range(0, len(changes), size))

    def changes(self, changes: Iterable[Change]) -> bytes:
        if self._shares_frames:
            return _shared_frames.of(changes, self._selected.namespace)
        return b"".join([self._event(change) for change in changes])

    def added(self, items: Iterable[Item]) -> bytes:
        selected = self._selected
        return b"".join([self._frame(b"ADDED", item) for item in items if selected.has(item)])

    def bookmark(self, revision: int, annotations: dict[str, str]) -> bytes:
        call = self._call
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        kind, version = call.served.resource.kind, call.served.resource.api_version
        if call.form.form is Form.TABLE:
            version = call.form.api_version
            table = tables.blank(call.served, metadata, version, headers=self._headers)
            self._headers = False
            return _line(b"BOOKMARK", answer.encode(table))
        if call.form.form is not Form.OBJECT:
            kind, version = "PartialObjectMetadata", call.form.api_version
        obj = {"kind": kind, "apiVersion": version, "metadata": metadata}
        return _line(b"BOOKMARK", answer.encode(obj))

    def _event(self, change: Change) -> bytes:
        """The event for a watch that sees the selected objects only; empty if it sees none."""
        item, previous, selected = change.item, change.previous, self._selected
        is_selected = change.type is not ChangeType.DELETED and selected.has(item)
        was_selected = previous is not None and selected.has(previous)
        if is_selected:
            return self._frame(b"MODIFIED" if was_selected else b"ADDED", item)
        if not was_selected or previous is None:
            return b""
        if change.type is ChangeType.DELETED:
            return self._frame(b"DELETED", item)
        # The object ceased to match: as it last matched, at the present revision.
        last = Item(
            previous.namespace,
            previous.name,
            previous.uid,
            item.revision,
            previous.created_revision,
            fill(hollow(previous.data), item.revision),
            previous.labels,
        )
        return self._frame(b"DELETED", last)

    def _frame(self, type_: bytes, item: Item) -> bytes:
        data = answer.single(self._call, item, headers=self._headers)
        self._headers = False
        return _line(type_, data)


_MAX_SHARED_BYTES = 1024 * 1024
"""Joined frames that are larger are not kept until the next batch."""


class _SharedFrames:
    """The joined frames of the newest batch, for the watches that want all of its objects.

    The watches of a collection are woken one after the other with the same batch object, so it
    is enough to keep the frames of one batch, and its identity says whose frames they are.
    """

    def __init__(self) -> None:
        self._changes: Iterable[Change] = ()
        self._frames: dict[str, bytes] = {}
        """By watched namespace; empty: all namespaces."""

    def of(self, changes: Iterable[Change], namespace: str) -> bytes:
        if changes is not self._changes:
            self._changes, self._frames = changes, {}
        frames = self._frames.get(namespace)
        if frames is None:
            frames = b"".join(
                [
                    _line(change.type.name.encode(), change.item.data)
                    for change in changes
                    if not namespace or change.item.namespace == namespace
                ]
            )
            if len(frames) <= _MAX_SHARED_BYTES:
                self._frames[namespace] = frames
        return frames


_shared_frames = _SharedFrames()


def _line(type_: bytes, data: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_, data)


def _error(error: errors.ApiError) -> bytes:
    return _line(b"ERROR", answer.encode(errors.to_status(error)))
