"""Watching a plane: changes reach every subscriber in batches, in order, without gap or repeat.

A plane that nobody watches has no `Hub`, no task and no queue. For a plane that is watched, the
changes of one turn of the event loop are grouped by resource once, and every subscriber of that
resource is handed the same list.

Telling a hundred subscribers takes milliseconds, and one loop serves all planes. Two rules keep
that from being everybody's latency:

- Only `AT_ONCE` subscribers are told in one turn of the loop; then others have their turn.
- After many were told there is a pause (`PAUSE` for each of them, `LONGEST_PAUSE` at most), so that
  under a stream of writes the next delivery has more changes at once. If nothing is published for
  a quarter of the pause, nothing else is waited for, and the pause ends early.

A reader that is too slow does not hold up the others, nor does it make memory grow: beyond `BUFFER`
changes it is cut off with Lagged, and lists and watches anew, as clients of Kubernetes must be able
to anyway.

A plane that is stepped has a loop of its own (`aio.stepped`), which may stand still after any turn.
In that loop there are no pauses, and everybody is told in one turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import chain
from time import monotonic
from types import TracebackType
from typing import TypeAlias

from kvestigate.aio.stepped import SteppedLoop
from kvestigate.cluster.plane.store.errors import Lagged, StoreError
from kvestigate.cluster.plane.store.model import Change, ResourceKey

BUFFER = 10_000
"""Changes that may wait for a subscriber before it is cut: a few MB, nearly all of it shared."""

PAUSE, LONGEST_PAUSE = 200e-6, 0.02
"""Seconds between two deliveries: for each who was told, which takes a quarter of it at least,
and for however many. With half of it a watched write costs an eighth more."""
QUIET = 1 / 4
"""Of a pause: if nothing was published for so long, nothing else is waited for."""

AT_ONCE = 16
"""Subscribers that are told in one turn of the loop: what takes them half a millisecond."""

Batch: TypeAlias = Sequence[Change]


class Subscription:
    """The changes of one resource (or all of them) in order, without gap or repeat.

        with plane.subscribe(PODS, since=revision) as subscription:
            async for changes in subscription: ...

    It ends when closed here or when the store closes, raises Lagged when its reader is too
    slow, and NoPlane when the plane is deleted. One reader at a time.
    """

    __slots__ = (
        "_batches",
        "_error",
        "_hub",
        "_limit",
        "_reached",
        "_reminded",
        "_reminder",
        "_size",
        "_waiter",
        "resource",
    )

    def __init__(
        self, hub: Hub, resource: ResourceKey | None, since: int, backlog: Batch, limit: int
    ) -> None:
        self.resource = resource
        self._hub: Hub | None = hub
        self._batches: list[Batch] = [backlog] if backlog else []
        self._size = 0
        self._limit = limit
        self._reached = since
        """Changes up to here were handed out or were not asked for."""
        self._waiter: asyncio.Future[None] | None = None
        self._reminder: asyncio.TimerHandle | None = None
        self._reminded = False
        self._error: StoreError | None = None

    @property
    def progress(self) -> int:
        """The reader has everything up to this revision: what a bookmark may say."""
        if self._batches:
            return max(self._reached, self._batches[0][0].revision - 1)
        if self._hub is None:
            return self._reached
        return max(self._reached, self._hub.delivered)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Batch:
        while not self._batches and not self._reminded:
            if self._error is not None:
                raise self._error
            if self._hub is None:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._reminded:
            self._reminded = False
            return ()
        batches, self._batches, self._size = self._batches, [], 0
        changes = batches[0] if len(batches) == 1 else [*chain.from_iterable(batches)]
        self._reached = max(self._reached, changes[-1].revision)
        return changes

    def remind(self, seconds: float) -> None:
        """Have the reader get an empty batch then, whatever else there is to get."""
        if self._reminder is not None:
            self._reminder.cancel()
        self._reminder = asyncio.get_running_loop().call_later(seconds, self._remind)

    def _remind(self) -> None:
        self._reminded = True
        self._wake()

    def close(self) -> None:
        self.end(None)
        if self._reminder is not None:
            self._reminder.cancel()

    def end(self, error: StoreError | None) -> None:
        """Stop: with an error at once, else after what is waiting has been read."""
        if self._hub is None:
            return
        self._reached = self.progress
        self._hub.leave(self)
        self._hub, self._error = None, error
        if error is not None:
            self._batches.clear()
        self._wake()

    def deliver(self, batch: Batch, reached: int) -> None:
        """`reached`: what the subscription's own start already covers."""
        if batch[0].revision <= reached:
            batch = [change for change in batch if change.revision > reached]
            if not batch:
                return
        self._size += len(batch)
        if self._size > self._limit:
            self.end(Lagged(self._limit))
            return
        self._batches.append(batch)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Hub:
    """The subscribers of one plane; exists only while there are any."""

    __slots__ = (
        "_keeps",
        "_members",
        "_newest",
        "_pause",
        "_paused_until",
        "_pending",
        "_published",
        "_scheduled",
        "_undelivered",
        "delivered",
    )

    def __init__(self, revision: int, plane: object) -> None:
        self._keeps = plane
        """A plane that is watched stays in memory."""
        self.delivered = revision
        """Of the newest change handed out to the subscribers."""
        self._newest = revision
        """Of the newest change that is being handed out."""
        self._members: dict[ResourceKey | None, dict[Subscription, int]] = {}
        """Each with the revision it started from."""
        self._pending: list[Change] = []
        self._undelivered: deque[tuple[Subscription, Batch, int]] = deque()
        """Subscribers that have not got the newest batch yet."""
        self._scheduled = False
        """Whether a delivery is scheduled or under way."""
        self._pause = self._paused_until = self._published = 0.0

    def __bool__(self) -> bool:
        return bool(self._members)

    def __len__(self) -> int:
        return sum(map(len, self._members.values()))

    def join(self, subscription: Subscription, covered: int) -> None:
        self._members.setdefault(subscription.resource, {})[subscription] = covered

    def leave(self, subscription: Subscription) -> None:
        members = self._members.get(subscription.resource, {})
        members.pop(subscription, None)
        if not members:
            self._members.pop(subscription.resource, None)

    def publish(self, changes: Batch) -> None:
        """Hand on, together with whatever else is published in this turn or until a pause ends."""
        self._pending.extend(changes)
        self._published = monotonic()
        if not self._scheduled:
            self._scheduled = True
            self._schedule()

    def end(self, error: StoreError | None) -> None:
        self._flush()
        for members in list(self._members.values()):
            for subscription in list(members):
                subscription.end(error)

    def end_of(self, resource: ResourceKey) -> None:
        """Nothing more will happen to a resource: it is no longer served."""
        self._flush()
        for subscription in list(self._members.get(resource, ())):
            subscription.end(None)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        quiet = self._published + self._pause * QUIET
        pause = min(self._paused_until, quiet) - monotonic()
        if pause > 0 and not isinstance(loop, SteppedLoop):  # which has a time of its own
            loop.call_later(pause, self._schedule)
        else:
            loop.call_soon(self._deliver)

    def _flush(self) -> None:
        """Deliver everything at once."""
        self._deliver_next(len(self._undelivered))
        self._prepare()
        self._deliver_next(len(self._undelivered))

    def _deliver(self) -> None:
        """Tell some subscribers of the newest changes, and see to it that the others are told."""
        if not self._undelivered:
            self._prepare()
        loop = asyncio.get_running_loop()
        # A stepped loop may stand still before there is another turn.
        self._deliver_next(len(self._undelivered) if isinstance(loop, SteppedLoop) else AT_ONCE)
        if self._undelivered:
            loop.call_soon(self._deliver)
        elif self._pending:
            self._schedule()
        else:
            self._scheduled = False

    def _prepare(self) -> None:
        """Group what is pending by resource, for each subscriber of the resource."""
        changes, self._pending = self._pending, []
        if not changes:
            return
        by_resource: dict[ResourceKey | None, list[Change]] = {None: changes}
        for change in changes:
            by_resource.setdefault(change.resource, []).append(change)
        for resource, batch in by_resource.items():
            members = self._members.get(resource, {})
            self._undelivered.extend((each, batch, covered) for each, covered in members.items())
        self._pause = min(len(self._undelivered) * PAUSE, LONGEST_PAUSE)
        self._newest = changes[-1].revision

    def _deliver_next(self, count: int) -> None:
        for _ in range(min(count, len(self._undelivered))):
            subscription, batch, covered = self._undelivered.popleft()
            if subscription in self._members.get(subscription.resource, {}):  # else it has left
                subscription.deliver(batch, covered)
        if not self._undelivered:
            self.delivered = self._newest  # last: who is cut above has not had these
            self._paused_until = monotonic() + self._pause
