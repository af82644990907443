"""Servers are killed in the middle of their writes, again and again."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kvestigate.cluster.plane.store.etcd.backend import EtcdBackend
from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.store import Store
from tests.cluster.plane.store import crash_writer
from tests.cluster.plane.store.conftest import Etcd
from tests.contracts.store import PODS, revisions, value_of

ROOT = Path(__file__).parents[4]
ROUNDS = int(os.environ.get("KVESTIGATE_KILL_ROUNDS", "10"))


def run_until_killed(
    place: Path | str, since: int, lines: int, server: str = ""
) -> list[list[str]]:
    """Everything a server said before it was killed, some time after `lines` lines.

    Of one that has a name and so is not alone, it is its own writes that count.
    """
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.cluster.plane.store.crash_writer",
            str(place),
            str(since),
            server,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        said: list[str] = []
        while lines and (line := process.stdout.readline()):
            said.append(line)
            lines -= not server or line.startswith("A")
        process.kill()
        said += process.stdout
    assert process.returncode == -9
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


def take(said: list[list[str]], acknowledged: dict[str, tuple[int, int]]) -> list[int]:
    """Note what was acknowledged; the revisions that were watched."""
    for line in said:
        if line[0] == "A":
            acknowledged[line[1]] = (int(line[2]), int(line[3]))
    return [int(line[1]) for line in said if line[0] == "W"]


@pytest.mark.timeout(60 + 3 * ROUNDS)
async def test_two_servers_on_an_etcd_die_one_after_the_other(
    shared_etcd: Etcd, prefix: str
) -> None:
    """The other one goes on meanwhile, and sees everything that the dead one had acknowledged."""
    place, chance = f"{shared_etcd.url}#{prefix}", random.Random(7)
    acknowledged: dict[str, tuple[int, int]] = {}
    watched: dict[str, list[int]] = {"a": [], "b": []}
    for _ in range(max(2, ROUNDS // 5)):
        reached = {server: seen[-1] if seen else 0 for server, seen in watched.items()}
        first, second = (
            asyncio.to_thread(run_until_killed, place, reached[server], writes, server)
            for server, writes in (("a", chance.randrange(20, 100)), ("b", 300))
        )
        for server, said in zip("ab", await asyncio.gather(first, second), strict=True):
            watched[server] += take(said, acknowledged)

    async with Store(EtcdBackend([shared_etcd.url], prefix=prefix)) as store:
        plane = await store.plane("one")
        assert len(acknowledged) == 2 * crash_writer.WRITERS
        for name, (at, count) in acknowledged.items():
            item = plane.state.get(PODS, "default", name)
            assert item is not None
            found = value_of(item.data)
            assert isinstance(found, int)
            assert (item.revision, found) >= (at, count)
        assert revisions(plane.events_since(0)) == list(range(1, plane.state.revision + 1))
    for seen in watched.values():
        assert seen == list(range(1, len(seen) + 1))
