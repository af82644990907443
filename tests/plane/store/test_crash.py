"""A server on SQLite is killed in the middle of its writes, again and again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from kvestigate.plane.store.sqlite.backend import SqliteBackend
from kvestigate.plane.store.store import Store
from tests.contracts.store import PODS, revisions, value_of
from tests.plane.store import crash_writer

ROOT = Path(__file__).parents[3]
ROUNDS = int(os.environ.get("KVESTIGATE_KILL_ROUNDS", "10"))


def run_until_killed(database: Path, since: int, lines: int) -> list[list[str]]:
    """Everything a server said before it was killed, some time after `lines` lines."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.plane.store.crash_writer", str(database), str(since)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        assert server.stdout is not None
        said = list(islice(server.stdout, lines))
        server.kill()
        said += server.stdout
    assert server.returncode == -9
    return [line.split() for line in said if line.endswith("\n")]


@pytest.mark.timeout(30 + 3 * ROUNDS)
async def test_no_acknowledged_write_is_lost_and_watches_resume(tmp_path: Path) -> None:
    database = tmp_path / "planes.db"
    chance = random.Random(7)
    acknowledged: dict[str, tuple[int, int]] = {}
    given: set[int] = set()
    watched: list[int] = []
    for _ in range(ROUNDS):
        reached = watched[-1] if watched else 0
        for line in run_until_killed(database, reached, chance.randrange(1, 400)):
            if line[0] == "W":
                watched.append(int(line[1]))
                continue
            name, revision, count = line[1], int(line[2]), int(line[3])
            assert revision not in given
            given.add(revision)
            acknowledged[name] = (revision, count)

        async with Store(SqliteBackend(database), crash_writer.RETENTION) as store:
            plane = await store.plane("one")
            for name, (at, count) in acknowledged.items():
                item = plane.state.get(PODS, "default", name)
                assert item is not None
                found = value_of(item.data)
                assert isinstance(found, int)
                assert (item.revision, found) >= (at, count)
            assert revisions(plane.events_since(0)) == list(range(1, plane.state.revision + 1))
            assert watched[-1:] <= [plane.state.revision]
    assert watched == list(range(1, len(watched) + 1))
    assert len(acknowledged) == crash_writer.WRITERS
