"""The recent changes of every plane, bounded: what watches resume from.

There is one journal a server, so the bound on memory holds for all planes together, while the
bound on changes holds for each plane, so that a busy plane forgets its own past first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvestigate.cluster.plane.store.errors import Compacted
from kvestigate.cluster.plane.store.model import Change, total_bytes


@dataclass(frozen=True, slots=True)
class Retention:
    """How much history is kept. Trimming starts a tenth above, so that it comes in batches."""

    changes: int = 10_000
    """Of one plane."""
    seconds: float = 3600.0
    """Older changes go when the next one is made."""
    total_bytes: int = 256 * 1024 * 1024
    """Of all planes in memory."""


class History:
    """The retained changes of one plane, oldest first."""

    __slots__ = ("changes", "compacted", "plane")

    def __init__(self, plane: str, compacted: int, changes: Sequence[Change] = ()) -> None:
        self.plane = plane
        self.compacted = compacted
        """Changes up to this revision are gone; watching from here still works."""
        self.changes = list(changes)

    def since(self, revision: int) -> list[Change]:
        """All changes after `revision`, or Compacted when some of them are gone."""
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        return self.changes[self._after(revision) :]

    def restart(self, compacted: int, changes: Sequence[Change]) -> None:
        """Begin anew with what was loaded."""
        self.compacted = compacted
        self.changes = list(changes)

    def drop(self, revision: int) -> int:
        """Forget the changes up to `revision`; the bytes they held."""
        end = self._after(revision)
        freed = total_bytes(self.changes[:end])
        del self.changes[:end]
        self.compacted = max(self.compacted, revision)
        return freed

    def _after(self, revision: int) -> int:
        return bisect_right(self.changes, revision, key=_revision)


def _revision(change: Change) -> int:
    return change.revision


class Journal:
    """Keeps the histories of all planes within the retention."""

    def __init__(self, retention: Retention, clock: Callable[[], float]) -> None:
        self._retention = retention
        self._most = retention.changes + retention.changes // 10
        self._oldest = retention.seconds * 1.1
        self._fullest = retention.total_bytes * 1.1
        self.clock = clock
        self._arrivals: deque[tuple[float, History, int]] = deque()
        """(time, history, its last revision then) of each append, so the oldest goes first. The
        time is ours, as changes may be dated by another."""
        self._bytes = 0
        self._count = 0
        self.listener: Callable[[str], None] | None = None
        """Called with the name of every plane that has changed."""

    def append(self, history: History, changes: Sequence[Change]) -> list[History]:
        """Add the changes; the histories that were trimmed to make room."""
        if not changes:
            return []
        history.changes.extend(changes)
        now = self.clock()
        self._admit(history, changes, now)
        if len(history.changes) <= self._most and not self._is_over(now):
            return []
        return self._trim(history, now)

    def adopt(self, history: History) -> None:
        """Count a history that was loaded with its changes."""
        if history.changes:
            self._admit(history, history.changes, self.clock())

    def forget(self, history: History) -> None:
        """Its plane is gone."""
        self._drop(history, history.changes[-1].revision if history.changes else history.compacted)

    def _admit(self, history: History, changes: Sequence[Change], now: float) -> None:
        self._bytes += total_bytes(changes)
        self._count += len(changes)
        self._arrivals.append((now, history, changes[-1].revision))

    def _drop(self, history: History, revision: int) -> None:
        before = len(history.changes)
        self._bytes -= history.drop(revision)
        self._count -= before - len(history.changes)
        if len(self._arrivals) > 2 * self._count + 1000:
            # Planes that forget by count leave their arrivals behind.
            live = (each for each in self._arrivals if each[2] > each[1].compacted)
            self._arrivals = deque(live)

    def _trim(self, history: History, now: float) -> list[History]:
        trimmed: dict[str, History] = {}
        if len(history.changes) > self._most:
            excess = len(history.changes) - self._retention.changes
            self._drop(history, history.changes[excess - 1].revision)
            trimmed[history.plane] = history
        for old in self._expired(now):
            trimmed[old.plane] = old
        return list(trimmed.values())

    def _is_over(self, now: float) -> bool:
        """Whether there are changes that are too old, or too many bytes of them."""
        if not self._arrivals:
            return False
        return now - self._arrivals[0][0] > self._oldest or self._bytes > self._fullest

    def _expired(self, now: float) -> list[History]:
        age, limit = self._retention.seconds, self._retention.total_bytes
        dropped: list[History] = []
        if not self._is_over(now):
            return dropped
        while self._arrivals and (now - self._arrivals[0][0] > age or self._bytes > limit):
            _, history, revision = self._arrivals.popleft()
            if revision > history.compacted:
                self._drop(history, revision)
                dropped.append(history)
        return dropped
