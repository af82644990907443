"""The runs of a job: one in each shard, started once and watched until it has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kvestigate_client.gateway import CybernetClient, CybernetError, NoSuchThing
from kvestigate_client.shards import JobFailed, Shard, ShardResult, ShardTask, call

_ATTEMPTS = 3
"""To start a run, when the gateway is away each time before it says whether it did."""


def by_rank(tasks: Sequence[ShardTask], shards: Sequence[Shard]) -> dict[int, ShardTask]:
    """The task of each shard; ValueError unless each has one."""
    if len(tasks) != len(shards):
        raise ValueError(f"tasks and shards do not match: {len(tasks)} and {len(shards)}")
    found: dict[int, ShardTask] = {}
    for position, task in enumerate(tasks):
        rank = position if task.rank is None else task.rank
        if rank in found:
            raise ValueError(f"rank {rank}: two tasks are meant for it")
        if not 0 <= rank < len(shards):
            raise ValueError(f"rank {rank}: there are 0 to {len(shards) - 1}")
        if not task.cmd or isinstance(task.cmd, str):
            raise ValueError(f"rank {rank}: the command {task.cmd!r} is no list of words")
        found[rank] = task
    return found


def start(
    client: CybernetClient,
    shard: Shard,
    task: ShardTask,
    env: Mapping[str, str],
    before: int | None,
) -> int:
    """Start a run once; its process. Whether a call without an answer has started it, the list of
    runs tells: `before` is the last process with this tag."""
    started = {"tag": task.tag, "command": list(task.cmd), "env": {**env, **task.env}}
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            return int(call(client, "workspace.run", shard, **started)["pid"])
        except CybernetError as failure:
            if not failure.unclear or not attempts_left:
                raise
        runs = call(client, "workspace.ps", shard)["runs"]
        pids = [run["pid"] for run in runs if run["tag"] == task.tag]
        if pids and pids[0] != before:
            return int(pids[0])
    raise AssertionError("the last attempt returns or raises")


def run_of(client: CybernetClient, shard: Shard, tag: str) -> Mapping[str, Any]:
    """The last run of a shard with this tag."""
    for run in call(client, "workspace.ps", shard)["runs"]:
        if run["tag"] == tag:
            found: Mapping[str, Any] = run
            return found
    raise NoSuchThing(f"rank {shard.rank}: there is no run {tag!r} any more", 404)


def results(shards: Sequence[Shard], runs: Sequence[Mapping[str, Any]]) -> list[ShardResult]:
    """How all of them ended; JobFailed if one did not end with 0."""
    ended = [
        ShardResult(shard.rank, shard.node, run["tag"], run["exit_code"])
        for shard, run in zip(shards, runs, strict=True)
    ]
    if failed := [it for it in ended if it.exit_code != 0]:
        shown = ", ".join(f"rank {it.rank} on {it.node}: {it.exit_code}" for it in failed)
        raise JobFailed(f"{len(failed)} of {len(ended)} shards failed: {shown}", ended)
    return ended


class Tail:
    """Tells lines that were not there before."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._shown: list[str] = []

    def show(self, text: str) -> None:
        lines = text.splitlines()
        for line in lines[_overlap(self._shown, lines) :]:
            self._tell(line)
        self._shown = lines


def _overlap(before: Sequence[str], now: Sequence[str]) -> int:
    """How many of the lines now are the last ones of before."""
    for count in range(min(len(before), len(now)), 0, -1):
        if list(before[-count:]) == list(now[:count]):
            return count
    return 0


def to_stderr(line: str) -> None:
    print(f"[rank 0] {line}", file=sys.stderr)
