"""Random requests at a gateway; `fuzz.py` sends as many as one likes."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.gateway.fuzz import siege


async def test_nothing_random_gets_through(tmp_path: Path) -> None:
    tally = await siege(tmp_path, 1_500, seed=7)
    assert (tally.broken, tally.leaked, tally.passed) == ([], [], []), tally
    assert tally.statuses[422] > 100
    assert tally.statuses[200] > 10
