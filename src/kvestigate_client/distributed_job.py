"""A job in many workspaces: find nodes, make a workspace on each, run, wait, clean up.

with DistributedJob(client, prefix="job-train", shards=4) as job:
    job.discover_and_plan(cpu_per_shard=8, mem_per_shard="32Gi")
    job.provision(tmpfs_per_shard="16Gi")
    job.sync_code("./train")
    job.run(["python3", "train.py"])
    job.wait_until_complete()

A gateway that is started anew meanwhile is waited for. Workspaces that could not be removed are not
forgotten: NotCleanedUp names a file, and `DistributedJob.resume(client, file)` goes on from there.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from kvestigate_client.gateway import (
    ConflictFound,
    CybernetClient,
    CybernetError,
    NoSuchThing,
)
from kvestigate_client.packing import Listing, pack
from kvestigate_client.placement import NodeState, ShardNeeds, amount_of, node_states, place
from kvestigate_client.shard_files import bring, in_all, listing, send
from kvestigate_client.shard_runs import Tail, by_rank, results, run_of, start, to_stderr
from kvestigate_client.shards import NotCleanedUp, Shard, ShardResult, ShardTask, call, each

_PLACED = "the job has its workspaces already"
_TAIL = 50
"""Lines of rank 0 that are looked at for progress."""


class DistributedJob:
    """Leaving the block destroys every workspace, whatever happened inside."""

    def __init__(
        self,
        client: CybernetClient,
        *,
        prefix: str,
        shards: int,
        state: str | Path | None = None,
    ) -> None:
        """`state` is a file for `resume`, kept while there are workspaces.

        Without one it is written when workspaces could not be removed.
        """
        if shards < 1:
            raise ValueError(f"shards: {shards} is less than one")
        self.client = client
        self.prefix = prefix
        self.shards: list[Shard] = []
        """Those that are provisioned, by rank."""
        self._chosen: list[NodeState] = []
        """Nodes, by rank."""
        self._spare: list[NodeState] = []
        """Nodes on which a shard would fit, too."""
        self._count = shards
        self._id = secrets.token_hex(4)  # two jobs with one prefix must not share workspaces
        self._needs = ShardNeeds()
        self._tags: dict[int, str] = {}
        self._pids: dict[tuple[int, str], int] = {}
        """The last process of a rank and a tag."""
        self._state = None if state is None else Path(state)
        self._moving = threading.Lock()

    @classmethod
    def resume(cls, client: CybernetClient, state: str | Path) -> DistributedJob:
        """The job whose workspaces a file names, with its runs: wait for them, fetch, destroy."""
        kept = json.loads(Path(state).read_text("utf-8"))
        job = cls(client, prefix=kept["prefix"], shards=kept["count"], state=state)
        job._id = kept["id"]
        job._chosen = [NodeState(**node) for node in kept["nodes"]]
        job.shards = [Shard(**shard) for shard in kept["shards"]]
        job._tags = {int(rank): tag for rank, tag in kept["tags"].items()}
        return job

    def _keep(self) -> None:
        """What `resume` needs, in the file for it; no file when there is nothing to go on with."""
        if self._state is None:
            return
        if not self.shards:
            self._state.unlink(missing_ok=True)
            return
        kept = {
            "prefix": self.prefix,
            "id": self._id,
            "count": self._count,
            "nodes": [asdict(node) for node in self._chosen],
            "shards": [asdict(shard) for shard in self.shards],
            "tags": self._tags,
        }
        new = self._state.with_name(f"{self._state.name}.{secrets.token_hex(4)}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        new.replace(self._state)

    def __enter__(self) -> DistributedJob:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.destroy()
        except NotCleanedUp as left:
            if error is None:
                raise
            print(f"warning: {left}", file=sys.stderr)

    @property
    def nodes(self) -> list[str]:
        """The names of the chosen ones, by rank."""
        return [node.name for node in self._chosen]

    def discover_and_plan(
        self,
        cpu_per_shard: float = 0,
        mem_per_shard: str | float = 0,
        gpu_per_shard: int = 0,
        strategy: str = "least-loaded",
    ) -> list[str]:
        """Choose a node for each shard; their names, by rank."""
        if self.shards:
            raise RuntimeError(_PLACED)
        self._chosen = []
        self._needs = ShardNeeds(cpu_per_shard, amount_of(mem_per_shard), gpu_per_shard)
        nodes = self.client.call("report.run", {"name": "nodes"})
        metrics = None
        if strategy == "least-loaded":
            metrics = self.client.call("report.run", {"name": "metrics"})
        info = self.client.info()
        gpus = None
        if gpu_per_shard and self._offers("workspace.gpus"):
            gpus = self.client.call("workspace.gpus")
        states = node_states(nodes, metrics, gpus)
        hosts = info["constraints"]["hosts"]
        fitting = place(states, self._count, self._needs, strategy, hosts)
        self._chosen, self._spare = fitting[: self._count], fitting[self._count :]
        return self.nodes

    def provision(
        self, tmpfs_per_shard: str | float | None = None, storage_mode: str = "all-tmpfs"
    ) -> list[Shard]:
        """Make a workspace on every chosen node, or none: a part of them is taken back."""
        if not self._chosen:
            raise RuntimeError("discover_and_plan comes first")
        if self.shards:
            raise RuntimeError(_PLACED)
        size = amount_of(tmpfs_per_shard or 0) or self._needs.memory or amount_of("1Gi")
        wanted = [
            Shard(rank, node, self._specification(rank, node, storage_mode, size))
            for rank, node in enumerate(self.nodes)
        ]
        self.shards = wanted  # from now on they may exist, whatever becomes of the calls
        self._keep()
        try:
            each(list(wanted), self._create)
        except BaseException:
            self.destroy()
            raise
        return self.shards

    def _create(self, shard: Shard) -> None:
        """On its node, or on another one if somebody was faster to take its GPUs."""
        while True:
            try:
                call(self.client, "workspace.create", shard)
                return
            except ConflictFound:
                with self._moving:
                    if not self._needs.gpus or not self._spare:
                        raise
                    node = self._spare.pop(0)
                    shard = Shard(shard.rank, node.name, {**shard.workspace, "node": node.name})
                    self.shards[shard.rank], self._chosen[shard.rank] = shard, node
                    self._keep()

    def _specification(self, rank: int, node: str, mode: str, size: int) -> dict[str, Any]:
        return {
            "name": f"{self.prefix}-{self._id}-{rank}",
            "node": node,
            "storage": {"mode": mode, "tmpfs_size": str(size)},
            "gpu": {"reserve": self._needs.gpus, "cordon_node": False},
        }

    def sync_code(
        self, source: str | Path, excludes: Sequence[str] = (), subdir: str = "code"
    ) -> None:
        """Send a directory to every shard: of files that all of them have, nothing is sent."""
        there = in_all(self._listings(self._provisioned(), subdir))
        for packed in pack(source, excludes, there):
            each(self.shards, partial(send, self.client, packed=packed, subdir=subdir))

    def sync_per_shard(
        self,
        sources: Mapping[int, str | Path],
        subdir: str = "datasets",
        excludes: Sequence[str] = (),
    ) -> None:
        """Send each listed rank a file or directory of its own; the others get nothing."""
        chosen = [self._shard(rank) for rank in sources]

        def send_own(shard: Shard) -> None:
            [there] = self._listings([shard], subdir)
            for packed in pack(sources[shard.rank], excludes, there):
                send(self.client, shard, packed, subdir)

        each(chosen, send_own)

    def _listings(self, shards: Sequence[Shard], subdir: str) -> list[Listing]:
        """What each of them has; nothing where the cyberspace does not let us look."""
        if not self._offers("workspace.fetch"):
            return [{} for _ in shards]
        return each(shards, lambda shard: listing(self.client, shard, subdir))

    def _offers(self, operation: str) -> bool:
        return any(it["name"] == operation for it in self.client.info()["operations"])

    def run(
        self, cmd: Sequence[str], env: Mapping[str, str] | None = None, tag: str = "main"
    ) -> None:
        """Start the same command in every shard."""
        self.run_tasks([ShardTask(cmd, dict(env or {}), tag=tag) for _ in self._provisioned()])

    def run_parallel(
        self,
        cmd_base: Sequence[str],
        args_per_shard: Sequence[Sequence[str]],
        env: Mapping[str, str] | None = None,
        tag: str = "main",
    ) -> None:
        """Start the same program in every shard, each with arguments of its own."""
        self.run_tasks(
            [ShardTask([*cmd_base, *args], dict(env or {}), tag=tag) for args in args_per_shard]
        )

    def run_tasks(self, tasks: Sequence[ShardTask]) -> None:
        """Start a command of its own in every shard."""
        shards = self._provisioned()
        tasks_by_rank = by_rank(tasks, shards)
        self._tags = {rank: task.tag for rank, task in tasks_by_rank.items()}
        self._keep()

        def begin(shard: Shard) -> None:
            task, env = tasks_by_rank[shard.rank], self._distributed(shard.rank)
            key = shard.rank, task.tag
            self._pids[key] = start(self.client, shard, task, env, self._pids.get(key))

        each(shards, begin)

    def _distributed(self, rank: int) -> dict[str, str]:
        return {
            "DIST_RANK": str(rank),
            "DIST_WORLD_SIZE": str(self._count),
            "DIST_PEERS": ",".join(node.address for node in self._chosen),
            "DIST_COORDINATOR": self._chosen[0].address,
        }

    def wait_until_complete(
        self,
        poll_interval: float = 10.0,
        timeout: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> list[ShardResult]:
        """Wait until every shard has ended; JobFailed if one of them did not end with 0.

        `progress` is told the new lines of rank 0; without one they go to standard error.
        """
        if not self._tags:
            raise RuntimeError("nothing has been started")
        deadline = None if timeout is None else time.monotonic() + timeout
        tail = Tail(progress or to_stderr)
        while True:
            runs = each(
                self.shards, lambda shard: run_of(self.client, shard, self._tags[shard.rank])
            )
            self._tell(tail)
            if all(run["state"] != "running" for run in runs):
                return results(self.shards, runs)
            if deadline is not None and time.monotonic() >= deadline:
                both = zip(self.shards, runs, strict=True)
                running = [shard.rank for shard, run in both if run["state"] == "running"]
                raise TimeoutError(f"after {timeout:g} seconds these ranks still run: {running}")
            time.sleep(poll_interval)

    def _tell(self, tail: Tail) -> None:
        """Progress is a courtesy: a cyberspace need not allow workspace.logs."""
        try:
            tail.show(self.logs(0, tail=_TAIL))
        except CybernetError:
            pass

    def logs(self, rank: int = 0, tail: int | None = None) -> str:
        """What a shard has written so far."""
        shard = self._shard(rank)
        tag = self._tags.get(rank, "main")
        return str(call(self.client, "workspace.logs", shard, tag=tag, tail=tail)["text"])

    def fetch(
        self, path: str, target: str | Path, ranks: Sequence[int] | None = None
    ) -> list[Path]:
        """Bring a file or directory of each shard to `target/RANK`; where they are, by rank."""
        chosen = self._provisioned() if ranks is None else [self._shard(it) for it in ranks]

        def bring_to(shard: Shard) -> Path:
            place_for = Path(target) / str(shard.rank)
            bring(self.client, shard, path, place_for)
            return place_for

        return each(chosen, bring_to)

    def destroy(self) -> None:
        """Remove every workspace; NotCleanedUp names those that could not be removed."""
        complaints: dict[int, CybernetError] = {}

        def remove(shard: Shard) -> None:
            try:
                call(self.client, "workspace.destroy", shard)
            except NoSuchThing:
                pass
            except CybernetError as error:
                complaints[shard.rank] = error

        each(self.shards, remove)
        self.shards = [shard for shard in self.shards if shard.rank in complaints]
        if not self.shards:
            self._keep()
            return
        self._state = self._state or Path(f"{self.prefix}-{self._id}.job.json").absolute()
        way_out = f'go on with DistributedJob.resume(client, "{self._state}").destroy()'
        try:
            self._keep()
        except OSError as error:
            way_out = f"and {self._state} cannot be written: {error.strerror}"
        named = "; ".join(
            f"{shard.workspace['name']} on {shard.node}: {complaints[shard.rank]}"
            for shard in self.shards
        )
        raise NotCleanedUp(f"workspaces are left: {named}; {way_out}", self.shards)

    def _provisioned(self) -> list[Shard]:
        if not self.shards:
            raise RuntimeError("provision comes first")
        return self.shards

    def _shard(self, rank: int) -> Shard:
        shards = {shard.rank: shard for shard in self._provisioned()}
        if rank not in shards:
            raise ValueError(f"rank {rank}: there are 0 to {self._count - 1}")
        return shards[rank]
