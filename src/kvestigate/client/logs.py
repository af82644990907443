"""Log lines of a container, and following them across broken connections.

Followed lines are neither lost nor doubled: each comes with the time it was written, and after
a reconnection the server repeats the last second, of which the lines seen before are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from kvestigate import errors
from kvestigate.aio.backoff import Backoff
from kvestigate.client.call import Call, parameters
from kvestigate.client.exchange import Exchange
from kvestigate.client.lines import Lines

_SECOND = len("2006-01-02T15:04:05")


class LogOptions(msgspec.Struct, frozen=True):
    """Which lines, and how."""

    container: str = ""
    """Needed where a pod has several."""
    follow: bool = False
    previous: bool = False
    """Of the container's last run, before its restart."""
    timestamps: bool = False
    """Each line begins with the time it was written."""
    tail: int | None = None
    since_seconds: int | None = None
    since_time: str = ""
    """`2006-01-02T15:04:05Z`; the server knows no fractions."""
    reconnect: bool = False
    """With `follow`: go on after the connection broke."""

    def query(self) -> tuple[tuple[str, str], ...]:
        return parameters(
            container=self.container,
            follow=self.follow,
            previous=self.previous,
            timestamps=self.timestamps or self.reconnect,
            tailLines=self.tail,
            sinceSeconds=self.since_seconds,
            sinceTime=self.since_time,
        )


async def log_lines(
    exchange: Exchange, call: Call, options: LogOptions
) -> AsyncGenerator[bytes, None]:
    """The lines, without their newlines, as they come."""
    if not (options.follow and options.reconnect):
        async with aclosing(_lines(exchange, call, options)) as lines:
            async for line in lines:
                yield line
        return
    async with aclosing(_unbroken(exchange, call, options)) as lines:
        async for line in lines:
            yield line if options.timestamps else line.partition(b" ")[2]


async def _lines(
    exchange: Exchange, call: Call, options: LogOptions
) -> AsyncGenerator[bytes, None]:
    request = call.request(*options.query())
    async with exchange.stream(call, request) as incoming:
        lines = Lines()
        async for piece in incoming:
            for line in lines.feed(piece):
                yield line
        if rest := lines.rest():
            yield rest


async def _unbroken(
    exchange: Exchange, call: Call, options: LogOptions
) -> AsyncGenerator[bytes, None]:
    seen = LastSecond()
    backoff = Backoff(initial=0.5, cap=30.0)
    resumed = options
    while True:
        heard = False
        try:
            async with aclosing(_lines(exchange, call, resumed)) as lines:
                async for line in lines:
                    heard = True
                    if seen.is_new(line):
                        yield line
            return
        except errors.ConnectionFailed:
            if not heard and resumed is options:
                raise
        except errors.NotFound:
            if resumed is options:
                raise
            return  # deleted while the connection was down: there is nothing left to follow
        if heard:
            backoff.reset()
        await exchange.policy.clock.sleep(backoff.next())
        if seen.second:
            resumed = msgspec.structs.replace(
                options, tail=None, since_seconds=None, since_time=f"{seen.second}Z"
            )
            seen.replay()


class LastSecond:
    """The lines of the newest second, to know them again when the server repeats it.

    A multiset, not the last line: two streams of a container may be out of order by a little,
    and a program may write the same line twice in one second. What lies before the first line
    was not asked for: a tail may begin in the middle of a second.
    """

    def __init__(self) -> None:
        self.second = ""
        self._first = b""
        self._seen: Counter[bytes] = Counter()
        self._repeated: Counter[bytes] = Counter()

    def is_new(self, line: bytes) -> bool:
        if self._repeated[line] > 0:
            self._repeated[line] -= 1
            return False
        # Without the zone's letter, because a shorter fraction is the earlier moment.
        moment = line.partition(b" ")[0].rstrip(b"Z")
        if moment < self._first:
            return False
        self._first = self._first or moment
        second = line[:_SECOND].decode("ascii", "replace")
        if second > self.second:
            self.second = second
            self._seen.clear()
        self._seen[line] += 1
        return True

    def replay(self) -> None:
        """The server will repeat this second."""
        self._repeated = self._seen.copy()
