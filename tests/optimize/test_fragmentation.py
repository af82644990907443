"""Free GPUs are counted as the definitions say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.optimize.collect import from_audit
from kvestigate.optimize.fragmentation import analyze
from kvestigate.optimize.model import Fill
from tests.optimize.conftest import AUDIT, fleet, node


def test_the_worked_example() -> None:
    found = analyze(from_audit(AUDIT.read_text(), "example"))
    assert [f"{it.share:.0%}" for it in found.nodes] == [
        "12%",
        "12%",
        *["100%"] * 5,
        "50%",
    ]
    assert (found.full, found.partial, found.empty) == (5, 3, 0)
    assert (found.capacity, found.allocated, found.free) == (64, 46, 18)
    assert (found.stranded, found.largest_block) == (18, 7)
    assert found.opportunity


@pytest.mark.parametrize(
    ("loads", "opportunity"),
    [
        ([(8,), (8,)], False),
        ([(4,), (8,)], False),
        ([(4,), ()], False),
        ([(4,), (4,)], True),
        ([(1,), (7,)], True),
        ([], False),
    ],
)
def test_more_must_be_free_than_one_node_has_on_several_partial_ones(
    loads: list[tuple[int, ...]], opportunity: bool
) -> None:
    found = analyze(fleet(*(node(f"n{at}", pods) for at, pods in enumerate(loads))))
    assert found.opportunity is opportunity
    assert found.opportunity == (found.free > found.largest_block and found.partial > 1)


@given(st.lists(st.lists(st.integers(1, 3), max_size=4), max_size=8))
def test_the_figures_add_up(loads: list[list[int]]) -> None:
    found = analyze(fleet(*(node(f"n{at}", pods) for at, pods in enumerate(loads))))
    assert found.full + found.partial + found.empty == len(loads)
    assert found.free == found.stranded + 8 * found.empty
    assert found.largest_block <= found.free
    assert all((it.fill is Fill.EMPTY) == (it.allocated == 0) for it in found.nodes)


def test_a_node_that_lost_devices_has_nothing_free() -> None:
    found = analyze(fleet(node("n", (4, 4), capacity=6)))
    assert (found.free, found.full, found.nodes[0].free) == (0, 1, 0)
