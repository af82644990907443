"""Random requests at a gateway; `fuzz.py` sends as many as one likes."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.gateway.fuzz import siege


async def test_nothing_random_gets_through(tmp_path: Path) -> None:
    tally = await siege(tmp_path, 600, seed=7)
    assert (tally.broken, tally.leaked, tally.passed) == ([], [], []), tally
    assert tally.statuses[422] > 50
    assert tally.statuses[200] > 3
