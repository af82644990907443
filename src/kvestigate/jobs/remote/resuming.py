"""A task's log across broken connections to the launcher's server: no line lost, none twice."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from kvestigate.aio.backoff import Backoff
from kvestigate.client.logs import LastSecond
from kvestigate.errors import ConnectionFailed, NotFound
from kvestigate.jobs.interface import LogRequest

_LINE = re.compile(
    rb"(?P<prefix>node-(?P<node>\d{1,6}) \| )?"
    rb"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) (?P<text>.*)",
    re.DOTALL,
)
_ATTEMPTS = 10
"""Consecutive connections without a new line before giving up."""


async def unbroken(
    connect: Callable[[LogRequest], AsyncGenerator[bytes, None]], request: LogRequest
) -> AsyncGenerator[bytes, None]:
    """The lines of `connect(request)`, asked for again from where the connection broke.

    Each line comes with its time. The second of a node's last line is repeated after a break,
    and what was had of it before is passed by.
    """
    log = _Log(request)
    backoff = Backoff(initial=0.2, cap=5.0)
    attempts = 0
    while True:
        try:
            async with aclosing(connect(log.request())) as lines:
                async for line in lines:
                    if (text := log.new(line)) is not None:
                        attempts = 0
                        backoff.reset()
                        yield text
            return
        except ConnectionFailed:
            attempts += 1
            if not log.begun or attempts > _ATTEMPTS:
                raise
        except NotFound:
            if not log.begun:
                raise
            return  # the task was removed while the connection was down
        await asyncio.sleep(backoff.next())


class _Log:
    """The position in each node's log."""

    def __init__(self, request: LogRequest) -> None:
        self._request = request
        self._nodes: dict[int, LastSecond] = defaultdict(LastSecond)
        self._without_time: set[bytes] = set()

    @property
    def begun(self) -> bool:
        return bool(self._nodes or self._without_time)

    def request(self) -> LogRequest:
        """For the lines that are still to come. Of a node that said nothing, those first asked."""
        for seen in self._nodes.values():
            seen.replay()
        after = {index: f"{seen.second}Z" for index, seen in self._nodes.items()}
        return replace(self._request, timestamps=True, after=after)

    def new(self, line: bytes) -> bytes | None:
        """The line in the form that was requested; None if it was returned before."""
        match = _LINE.fullmatch(line)
        if match is None:  # why there is no log: the launcher's own words
            if line in self._without_time:
                return None
            self._without_time.add(line)
            return line
        time, text = match["time"], match["text"]
        if not self._nodes[int(match["node"] or b"0")].is_new(time + b" " + text):
            return None
        if self._request.timestamps:
            return line
        return (match["prefix"] or b"") + text
