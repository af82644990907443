"""When probe results add up to a verdict."""

from __future__ import annotations

import pytest

from kvestigate.node.probes import Tally


@pytest.mark.parametrize(
    ("results", "verdicts"),
    [
        ("+", [True]),
        ("---", [None, None, False]),
        ("--+---", [None, None, True, None, None, False]),
        ("----", [None, None, False, False]),
    ],
)
def test_failures_count_only_in_a_row(results: str, verdicts: list[bool | None]) -> None:
    tally = Tally(success_threshold=1, failure_threshold=3)
    assert [tally.observe(result == "+") for result in results] == verdicts


def test_success_can_need_several_in_a_row() -> None:
    tally = Tally(success_threshold=2, failure_threshold=1)
    assert [tally.observe(ok) for ok in (True, False, True, True)] == [None, False, None, True]
