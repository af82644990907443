"""The objects of a namespace as they stand in snapshots, so that they are put together once.

The text is kept in segments. When an object has changed, only its segment is made anew: the
others are shared with the text before, and so with those of forks and of past states.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from weakref import ref

from kvestigate.cluster.plane.store.state import Bucket
from kvestigate.cluster.plane.tenancy.environment.trimming import locate

Pause = Callable[[], Awaitable[None]]

SPAN = 32
"""Objects of a new segment: some 64 KB of pods."""
_TURN = 2
"""Segments that are made at once: what takes a quarter of a millisecond."""
_LIMIT = 64 * 2**20


class Text:
    """All objects of a bucket in their order. Never changes."""

    __slots__ = ("__weakref__", "firsts", "segments", "size")

    def __init__(self, firsts: Sequence[str], segments: Sequence[bytes]) -> None:
        self.firsts = firsts
        """The name of the first object of each segment."""
        self.segments = segments
        """Objects with a comma behind each."""
        self.size = sum(map(len, segments))


class Texts:
    """Texts that were made, up to a number of bytes: the ones used last."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._size = 0
        """As if nothing was shared between them: the truth is less."""
        self._kept: OrderedDict[Text, None] = OrderedDict()

    async def of(self, bucket: Bucket, pause: Pause) -> Text:
        """The text of a bucket; there is a pause now and then while a long one is made."""
        known = None if bucket.derived is None else bucket.derived()
        if not isinstance(known, Text):
            text = Text(*await _segments(bucket, bucket.names(), pause))
        else:
            if known in self._kept:
                self._kept.move_to_end(known)
            if not bucket.touched:
                return known
            text = await _patched(known, bucket, pause)
        bucket.derived, bucket.touched = ref(text), ()
        self._keep(text)
        return text

    def _keep(self, text: Text) -> None:
        self._kept[text] = None
        self._size += text.size
        while self._size > self._limit:
            oldest, _ = self._kept.popitem(last=False)
            self._size -= oldest.size


async def _patched(text: Text, bucket: Bucket, pause: Pause) -> Text:
    """The text of a bucket that stems from the one of `text`."""
    names, bounds = bucket.names(), text.firsts
    firsts, segments = list(bounds), list(text.segments)
    dirty = {max(bisect_right(bounds, name) - 1, 0) for name in bucket.touched}
    for index in sorted(dirty, reverse=True):  # so that those still to come stay in their places
        start = bisect_left(names, bounds[index]) if index else 0
        end = bisect_left(names, bounds[index + 1]) if index + 1 < len(bounds) else len(names)
        fresh = await _segments(bucket, names[start:end], pause)
        firsts[index : index + 1], segments[index : index + 1] = fresh
    return Text(firsts, segments)


async def _segments(
    bucket: Bucket, names: Sequence[str], pause: Pause
) -> tuple[list[str], list[bytes]]:
    """One after the other; a few objects more do not make another."""
    span = len(names) if len(names) < 2 * SPAN else SPAN
    starts = range(0, len(names), span or 1)
    segments: list[bytes] = []
    for start in starts:
        segments.append(_joined(bucket, names[start : start + span]))
        if len(segments) % _TURN == 0:
            await pause()
    return [names[start] for start in starts], segments


def _joined(bucket: Bucket, names: Sequence[str]) -> bytes:
    items = bucket.items
    parts: list[bytes] = []
    for name in names:
        item = items[name]
        data = item.data
        start, end = item.cut or locate(item)
        if start == end:
            parts += (data, b",")
        else:
            parts += (data[:start], data[end:], b",")
    return b"".join(parts)
