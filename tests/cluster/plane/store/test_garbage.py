"""Removing rows from a log is invisible to everyone who still looks at it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.store.garbage import Row, View, superseded, unseen
from kvestigate.cluster.plane.store.model import ChangeType

BASE = 3
"""Objects 0 and 1 come from the parent; the others are created in the log."""


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """A log that could have been: rows alternate between life and death for each object."""
    alive = {0: (1, 1), 1: (2, 2)}  # object -> (revision, created)
    rows = []
    for revision in range(BASE + 1, BASE + 1 + draw(st.integers(0, 25))):
        number = draw(st.integers(0, 4))
        before, created = alive.get(number, (0, revision))
        if before and draw(st.booleans()):
            kind = ChangeType.DELETED
            del alive[number]
        else:
            kind = ChangeType.MODIFIED if before else ChangeType.ADDED
            alive[number] = (revision, created)
        rows.append(Row((number, "", ""), revision, kind, before, created))
    return rows


def seen_at(rows: Sequence[Row], revision: int) -> dict[int | str, int]:
    """object -> revision, as a reader that replays the log finds it."""
    found: dict[int | str, int] = {0: 1, 1: 2}
    for row in sorted(rows, key=lambda row: row.revision):
        if row.revision > revision:
            break
        if row.type == ChangeType.DELETED:
            found.pop(row.object[0], None)
        else:
            found[row.object[0]] = row.revision
    return found


def by_object(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.object, row.revision))


@given(logs(), st.data())
def test_nobody_notices(rows: list[Row], data: st.DataObject) -> None:
    last = BASE + len(rows)
    pins = sorted(data.draw(st.sets(st.integers(BASE, last))))
    compacted = data.draw(st.integers(BASE, last))
    alive = data.draw(st.booleans())
    view = View(BASE, compacted, pins, alive)
    gone = set(unseen(by_object(rows), view))
    left = [row for row in rows if row.revision not in gone]
    for revision in [*pins, *(range(compacted, last + 1) if alive else ())]:
        assert seen_at(left, revision) == seen_at(rows, revision)
    if alive:
        assert [row for row in left if row.revision > compacted] == rows[compacted - BASE :]


@given(logs(), st.data())
def test_nobody_notices_when_it_is_done_piece_by_piece(
    rows: list[Row], data: st.DataObject
) -> None:
    last = BASE + len(rows)
    pins = sorted(data.draw(st.sets(st.integers(BASE, last))))
    left, start = rows, BASE
    for step in sorted(data.draw(st.sets(st.integers(BASE, last), min_size=1))):
        piece = [row for row in left if start < row.revision <= step]
        gone = set(superseded(piece, View(BASE, step, pins)))
        left = [row for row in left if row.revision not in gone]
        start = step
        for revision in [*pins, *range(step, last + 1)]:
            assert seen_at(left, revision) == seen_at(rows, revision)

    kept = [pin for pin in pins if data.draw(st.booleans())]
    gone = set(unseen(by_object(left), View(BASE, start, kept)))
    left = [row for row in left if row.revision not in gone]
    for revision in [*kept, *range(start, last + 1)]:
        assert seen_at(left, revision) == seen_at(rows, revision)


@given(logs())
def test_a_living_plane_without_pins_keeps_one_row_an_object(rows: list[Row]) -> None:
    last = BASE + len(rows)
    gone = set(unseen(by_object(rows), View(BASE, last, [])))
    left = [row for row in rows if row.revision not in gone]
    assert len({row.object for row in left}) == len(left)
    inherited = {(0, "", ""), (1, "", "")}
    assert all(row.object in inherited for row in left if row.type == ChangeType.DELETED)
