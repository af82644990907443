"""watch: the changes of a resource as they happen, each framed once for all who watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from kvestigate import errors
from kvestigate.cluster.plane.request import options, versions
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.negotiate import Form
from kvestigate.cluster.plane.request.selection import Selection, selection
from kvestigate.cluster.plane.response import answer, forms, tables
from kvestigate.cluster.plane.store.body import fill, hollow
from kvestigate.cluster.plane.store.errors import Compacted, StoreError
from kvestigate.cluster.plane.store.model import Change, ChangeType, Item
from kvestigate.cluster.plane.store.watch import Subscription
from kvestigate.http.message import Response

BOOKMARK_SECONDS = 60.0
_FAREWELL_SECONDS = 2.0
"""A last bookmark comes so long before the end, so that whoever watches on begins from there."""
DEFAULT_SECONDS = (1800, 3600)
"""A watch that sets no limit ends somewhere in between, so that not all end together."""

_AT_ONCE, _MADE = 100, 8
"""Objects that are shown without a pause: as they are stored, or made up for this watch."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


async def watch(call: Call) -> Response:
    options.check_watch(call.info)
    if call.form.form is Form.METADATA_LIST:
        raise forms.not_a_list(call)
    chosen = selection(call.info, call.served)
    version = call.info.params.get("resourceVersion", "")
    state = call.plane.state
    initial: Iterator[Item] = iter(())
    anywhere = version in ("", "0")
    since = state.revision if anywhere else versions.parse(version, versions.FIELD)
    if call.info.flag("sendInitialEvents") or (anywhere and not _declines_initial(call)):
        initial = state.collection(call.kind.key).items(chosen.namespace or None)
        since = state.revision
    body: AsyncIterator[bytes]
    try:
        subscription = call.plane.subscribe(call.kind.key, since)
    except Compacted as error:
        # Clients expect this one as an event, though nothing was ever watched.
        body = _only(_error(errors.Expired(error.message)))
    else:
        body = _stream(call, chosen, subscription, initial, since)
    return Response(200, [("content-type", "application/json")], body, compress=False)


async def _only(frame: bytes) -> AsyncIterator[bytes]:
    yield frame


def _declines_initial(call: Call) -> bool:
    return "sendInitialEvents" in call.info.params


async def _stream(
    call: Call,
    chosen: Selection,
    subscription: Subscription,
    initial: Iterator[Item],
    since: int,
) -> AsyncIterator[bytes]:
    framer = _Framer(call, chosen)
    bookmarks = call.info.flag("allowWatchBookmarks")
    # Who watches waits in their own time, also where the plane's stands still.
    time = asyncio.get_running_loop().time
    deadline = time() + _duration(call)
    with subscription:
        while some := list(islice(initial, framer.at_once)):
            if frames := framer.added(some):
                yield frames
            await call.pause()
        if call.info.flag("sendInitialEvents") and bookmarks:
            yield framer.bookmark(since, {INITIAL_EVENTS_END: "true"})
        subscription.remind(_until_bookmark(deadline - time()))
        try:
            async for changes in subscription:
                if changes:
                    for portion in framer.portions(changes):
                        await call.breathe()
                        if frames := framer.changes(portion):
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


def _duration(call: Call) -> float:
    seconds = call.info.integer("timeoutSeconds")
    return float(seconds) if seconds else call.random.uniform(*DEFAULT_SECONDS)


def _until_bookmark(left: float) -> float:
    """Seconds to the next bookmark of a watch that has `left` to go, or to its end."""
    last = left - _FAREWELL_SECONDS
    return min(last if last > 0 else left, BOOKMARK_SECONDS)


class _Framer:
    """Makes the events of one watch."""

    def __init__(self, call: Call, chosen: Selection) -> None:
        self._call = call
        self._chosen = chosen
        as_stored = call.form.form is Form.OBJECT and call.served.shown_as_stored
        self._shares = chosen.everything and as_stored
        self.at_once = _AT_ONCE if as_stored else _MADE
        """What is shown without a pause."""
        self._headers = True
        """Whether a Table still has to name its columns: only the first one does."""

    def portions(self, changes: Sequence[Change]) -> Iterable[Sequence[Change]]:
        """Of a batch: few are the batch itself, which others have been shown already."""
        size = self.at_once
        if len(changes) <= size:
            return (changes,)
        return (changes[start : start + size] for start in range(0, len(changes), size))

    def changes(self, changes: Iterable[Change]) -> bytes:
        if self._shares:
            return _batches.frames(changes, self._chosen.namespace)
        return b"".join([frame for change in changes if (frame := self._selected(change))])

    def added(self, items: Iterable[Item]) -> bytes:
        chosen = self._chosen
        return b"".join([self._frame(b"ADDED", item) for item in items if chosen.has(item)])

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

    def _selected(self, change: Change) -> bytes:
        """The event as one who sees only the selection sees it."""
        item, previous, chosen = change.item, change.previous, self._chosen
        now = change.type is not ChangeType.DELETED and chosen.has(item)
        before = previous is not None and chosen.has(previous)
        if now:
            return self._frame(b"MODIFIED" if before else b"ADDED", item)
        if not before or previous is None:
            return b""
        if change.type is ChangeType.DELETED:
            return self._frame(b"DELETED", item)
        # It left the selection: what the watcher knew of it, at the revision it left.
        data = fill(hollow(previous.data), item.revision)
        return self._frame(b"DELETED", _with_data(previous, data, item.revision))

    def _frame(self, type_: bytes, item: Item) -> bytes:
        data = forms.single(self._call, item, headers=self._headers)
        self._headers = False
        return _line(type_, data)


_KEPT_BYTES = 1024 * 1024
"""What is kept of a batch until the next one comes."""


class _Batches:
    """The frames of the newest batch: all who watch the same get the same one after the other."""

    def __init__(self) -> None:
        self._changes: Iterable[Change] = ()
        self._frames: dict[str, bytes] = {}
        """By the namespace that is watched; empty: all."""

    def frames(self, changes: Iterable[Change], namespace: str) -> bytes:
        if changes is not self._changes:
            self._changes, self._frames = changes, {}
        frames = self._frames.get(namespace)
        if frames is None:
            frames = b"".join(
                [
                    _shared(change)
                    for change in changes
                    if not namespace or change.item.namespace == namespace
                ]
            )
            if len(frames) <= _KEPT_BYTES:
                self._frames[namespace] = frames
        return frames


_batches = _Batches()


def _shared(change: Change) -> bytes:
    frame = change.frame
    if not isinstance(frame, bytes):
        frame = _line(change.type.name.encode(), change.item.data)
        change.frame = frame
    return frame


def _with_data(item: Item, data: bytes, revision: int) -> Item:
    return Item(
        item.namespace, item.name, item.uid, revision, item.created_revision, data, item.labels
    )


def _line(type_: bytes, data: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_, data)


def _error(error: errors.ApiError) -> bytes:
    return _line(b"ERROR", answer.encode(errors.to_status(error)))
