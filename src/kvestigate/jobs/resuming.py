"""A task's log across broken connections to the launcher's server: no line lost, none twice."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from kvestigate.aio.backoff import Backoff
from kvestigate.errors import ConnectionFailed, NotFound

_NODE = re.compile(rb"node-\d+ \| ")
_ATTEMPTS = 10
"""Connections one after the other that bring nothing new."""


async def unbroken(
    connect: Callable[[], AsyncGenerator[bytes, None]],
) -> AsyncGenerator[bytes, None]:
    """The lines of `connect()`, which gives the whole log each time it is called.

    The nodes' lines may be mixed differently each time; those of one node have an order. So the
    lines that were had before are counted for each node, and that many are passed by.
    """
    had: Counter[bytes] = Counter()
    backoff = Backoff(initial=0.2, cap=5.0)
    attempts = 0
    while True:
        again: Counter[bytes] = Counter()
        try:
            async with aclosing(connect()) as lines:
                async for line in lines:
                    node = _node(line)
                    again[node] += 1
                    if again[node] > had[node]:
                        had[node] = again[node]
                        attempts = 0
                        backoff.reset()
                        yield line
            return
        except ConnectionFailed:
            attempts += 1
            if not had or attempts > _ATTEMPTS:
                raise
        except NotFound:
            if not had:
                raise
            return  # the task was removed while the connection was down
        await asyncio.sleep(backoff.next())


def _node(line: bytes) -> bytes:
    found = _NODE.match(line)
    return found[0] if found else b""
