"""Same seed, same actions: the same bytes. KVESTIGATE_REPEATS=100 proves it at length."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.workforce.conftest import World
from tests.cluster.workforce.episode import episode

_ROOT = Path(__file__).parents[3]
REPEATS = int(os.environ.get("KVESTIGATE_REPEATS", "3"))


@pytest.mark.timeout(60 + 3 * REPEATS)
async def test_the_same_actions_give_the_same_bytes(planes: World) -> None:
    prints = {await episode(planes, f"run-{number}") for number in range(REPEATS)}
    assert len(prints) == 1


async def test_another_seed_gives_others(planes: World) -> None:
    assert await episode(planes, "a", seed=1) != await episode(planes, "b", seed=2)


def test_another_process_with_other_hashes_gives_the_same() -> None:
    prints = set()
    for seed in ("0", "1", "4711"):
        told = subprocess.run(
            [sys.executable, "-m", "tests.cluster.workforce.episode", "1"],
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        prints.add(told.stdout)
    assert len(prints) == 1
