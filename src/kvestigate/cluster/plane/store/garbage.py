"""Which rows of a plane's log nobody can see any more. Pure.

A row is seen from its own revision until the next one of the same object. It is needed when
the history reaches back to where it was seen, when a fork or checkpoint looks at the plane
at such a revision (a pin), or when it is the last one of a living plane. A deletion is needed
as long as there is something beneath that it hides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from kvestigate.cluster.plane.store.model import ChangeType


class Row(NamedTuple):
    """A row of the log without its payload."""

    object: tuple[int | str, ...]
    revision: int
    type: int
    previous: int
    created: int


class View(NamedTuple):
    """Who still looks at a plane."""

    base: int
    """Objects created up to here belong to the parent."""
    compacted: int
    """The history starts here."""
    pins: Sequence[int]
    """Ascending revisions at which forks and checkpoints look."""
    alive: bool = True
    """False: the plane itself is deleted, only its pins are left."""

    def pinned(self, start: int, end: int) -> bool:
        """Does anyone look at a revision in [start, end)?"""
        at = bisect_left(self.pins, start)
        return at < len(self.pins) and self.pins[at] < end


def superseded(rows: Iterable[Row], view: View) -> Iterator[int]:
    """The garbage that a piece of history leaves when it is forgotten.

    `rows` is that piece. Right as long as every older piece was cleaned under pins that are
    still there; if not, take `unseen`.
    """
    for row in rows:
        if row.previous > view.base and not view.pinned(row.previous, row.revision):
            yield row.previous
        if (
            row.type == ChangeType.DELETED
            and row.created > view.base
            and not view.pinned(row.created, row.revision)
        ):
            yield row.revision


def unseen(rows: Iterable[Row], view: View) -> Iterator[int]:
    """All garbage of a whole log, which comes ordered by object, then revision."""
    for _, group in groupby(rows, key=lambda row: row.object):
        versions = list(group)
        beneath = versions[0].created <= view.base
        for row, after in zip(versions, [*versions[1:], None], strict=True):
            if not _needed(row, after, view):
                yield row.revision
            elif row.type != ChangeType.DELETED or row.revision > view.compacted:
                beneath = True
            elif not beneath:
                yield row.revision


def _needed(row: Row, after: Row | None, view: View) -> bool:
    if after is None:
        return view.alive or view.pinned(row.revision, 1 << 62)
    if view.alive and after.revision > view.compacted:
        return True
    return view.pinned(row.revision, after.revision)
