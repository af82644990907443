"""Sets of indexes in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.controllers.jobs import indexes


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((0,), "0"), ((0, 1), "0,1"), ((1, 3, 4, 5), "1,3-5"), (range(4), "0-3")],
)
def test_runs_of_three_become_a_range(numbers: tuple[int, ...], text: str) -> None:
    assert indexes.write(numbers) == text


@given(st.frozensets(st.integers(0, 500)))
def test_what_is_written_is_read(numbers: frozenset[int]) -> None:
    assert indexes.parse(indexes.write(numbers)) == numbers


@given(st.text(alphabet="0123456789,-x", max_size=12).filter(lambda text: len(text) < 8))
def test_anything_is_read_without_failing(text: str) -> None:
    indexes.parse(",".join(part[:3] for part in text.split(",")))
