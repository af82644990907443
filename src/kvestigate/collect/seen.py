"""What was emitted a moment ago, so that it is not emitted again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

_MOST = 16_384
"""States remembered at a time: at full speed memory counts more than the last repeat."""


class SeenKey(NamedTuple):
    """One state of one object."""

    namespace: str
    kind: str
    name: str
    resource_version: str


class SeenCache:
    """Remembers states for `ttl_sec` seconds.

    It also remembers up to where a snapshot has shown everything, so that a stream which is
    given the same cache goes on exactly there.
    """

    def __init__(self, ttl_sec: float = 10.0, *, now: Callable[[], float] = time.monotonic) -> None:
        self.ttl_sec = ttl_sec
        self.positions: dict[tuple[str, str], str] = {}
        """Kind and namespace -> the resource version of its snapshot."""
        self._now = now
        self._expires: OrderedDict[SeenKey, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._expires)

    def seen(self, key: SeenKey) -> bool:
        """Whether `key` was here within the last `ttl_sec` seconds; from now on it was."""
        now = self._now()
        self._forget(now)
        if key in self._expires:
            return True
        self._expires[key] = now + self.ttl_sec
        return False

    def _forget(self, now: float) -> None:
        expires = self._expires
        while expires:
            key, end = next(iter(expires.items()))
            if end > now and len(expires) < _MOST:
                return
            del expires[key]
