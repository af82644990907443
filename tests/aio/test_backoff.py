from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.aio.backoff import Backoff


def test_pauses_double_up_to_the_cap_and_start_over_after_a_reset() -> None:
    backoff = Backoff(initial=1, cap=5, jitter=0)
    assert [backoff.next() for _ in range(4)] == [1, 2, 4, 5]
    backoff.reset()
    assert backoff.next() == 1


@given(
    attempts=st.integers(min_value=1, max_value=3000), chance=st.floats(min_value=0, max_value=1)
)
def test_jitter_only_lengthens_and_never_overflows(attempts: int, chance: float) -> None:
    backoff = Backoff(initial=0.5, cap=30, jitter=0.5, random=lambda: chance)
    backoff.attempts = attempts
    assert 1 <= backoff.next() <= 45


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_jitter_spreads_from_the_pause_to_its_multiple(chance: float) -> None:
    assert Backoff(initial=2, jitter=0.5, random=lambda: chance).next() == 2 + chance
