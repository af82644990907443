"""Random requests at a gateway; `fuzz.py` sends as many as one likes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.attacks.conftest import RANDOM
from tests.attacks.gateway.fuzz import siege

ATTEMPTS = 600


async def test_nothing_random_gets_through(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property(RANDOM, ATTEMPTS)
    tally = await siege(tmp_path, ATTEMPTS, seed=7)
    assert (tally.broken, tally.leaked, tally.passed) == ([], [], []), tally
    assert tally.statuses[422] > 50
    assert tally.statuses[200] > 3
