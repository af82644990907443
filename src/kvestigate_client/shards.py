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

import base64
import json
import os
import secrets
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, TypeVar

from kvestigate_client.extraction import extract
from kvestigate_client.gateway import (
    ConflictFound,
    CybernetClient,
    CybernetError,
    NoSuchThing,
    OperationFailed,
    TooLarge,
)
from kvestigate_client.packing import Packed, pack, unpack
from kvestigate_client.placement import NodeState, ShardNeeds, amount_of, node_states, place

T = TypeVar("T")

_PLACED = "the job has its workspaces already"

JOB_OPERATIONS = (
    "report.run",
    "workspace.create",
    "workspace.sync",
    "workspace.run",
    "workspace.ps",
    "workspace.destroy",
)
"""What a cyberspace has to allow for a DistributedJob."""
_TOGETHER = 8
_ATTEMPTS = 3
"""To start a run, when the gateway is away each time before it says whether it did."""
_PART = 16 << 20
"""Bytes of a file that are fetched at once."""
_LINKS_AND_DIRECTORIES = {"link": tarfile.SYMTYPE, "directory": tarfile.DIRTYPE}
_TAIL = 50
"""Lines of rank 0 that are looked at for progress."""


class JobFailed(Exception):
    """Some shards did not end with 0; `results` has them all."""

    def __init__(self, message: str, results: Sequence[ShardResult]) -> None:
        super().__init__(message)
        self.results = list(results)


class NotCleanedUp(Exception):
    """Workspaces that could not be destroyed are still there; the job still has them."""

    def __init__(self, message: str, left: Sequence[Shard]) -> None:
        super().__init__(message)
        self.left = list(left)


@dataclass(frozen=True)
class ShardTask:
    """What one shard runs."""

    cmd: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    rank: int | None = None
    """None: its place in the list."""
    tag: str = "main"


@dataclass(frozen=True)
class Shard:
    """One workspace of a job."""

    rank: int
    node: str
    workspace: Mapping[str, Any]
    """The specification with which it is named in every call."""


@dataclass(frozen=True)
class ShardResult:
    rank: int
    node: str
    tag: str
    exit_code: int | None
    """None if nobody knows: the node went down meanwhile."""


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
        if gpu_per_shard and any(it["name"] == "workspace.gpus" for it in info["operations"]):
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
            self._each(list(wanted), self._create)
        except BaseException:
            self.destroy()
            raise
        return self.shards

    def _create(self, shard: Shard) -> None:
        """On its node, or on another one if somebody was faster to take its GPUs."""
        while True:
            try:
                self._call("workspace.create", shard)
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
        """Send a directory to every shard."""
        self._provisioned()
        for packed in pack(source, excludes):
            self._each(self.shards, partial(self._sync, packed=packed, subdir=subdir))

    def sync_per_shard(
        self,
        sources: Mapping[int, str | Path],
        subdir: str = "datasets",
        excludes: Sequence[str] = (),
    ) -> None:
        """Send each listed rank a file or directory of its own; the others get nothing."""
        chosen = [self._shard(rank) for rank in sources]

        def send(shard: Shard) -> None:
            for packed in pack(sources[shard.rank], excludes):
                self._sync(shard, packed, subdir)

        self._each(chosen, send)

    def _sync(self, shard: Shard, packed: Packed, subdir: str) -> None:
        encoded = base64.b64encode(packed.archive).decode()
        more = {"offset": packed.offset} if packed.offset else {}
        self._call("workspace.sync", shard, archive=encoded, subdir=subdir, **more)

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
        by_rank = self._by_rank(tasks)

        self._tags = {rank: task.tag for rank, task in by_rank.items()}
        self._keep()
        self._each(self.shards, lambda shard: self._start(shard, by_rank[shard.rank]))

    def _start(self, shard: Shard, task: ShardTask) -> None:
        """Once: whether a call without an answer has started it, the list of runs tells."""
        env = {**self._distributed(shard.rank), **task.env}
        started = {"tag": task.tag, "command": list(task.cmd), "env": env}
        key = shard.rank, task.tag
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                self._pids[key] = self._call("workspace.run", shard, **started)["pid"]
                return
            except CybernetError as failure:
                if not failure.unclear or not attempts_left:
                    raise
            runs = self._call("workspace.ps", shard)["runs"]
            pids = [run["pid"] for run in runs if run["tag"] == task.tag]
            if pids and pids[0] != self._pids.get(key):
                self._pids[key] = pids[0]
                return

    def _by_rank(self, tasks: Sequence[ShardTask]) -> dict[int, ShardTask]:
        shards = self._provisioned()
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
        tail = _Tail(progress or _to_stderr)
        while True:
            runs = self._each(self.shards, self._run_of)
            self._tell(tail)
            if all(run["state"] != "running" for run in runs):
                return self._results(runs)
            if deadline is not None and time.monotonic() >= deadline:
                both = zip(self.shards, runs, strict=True)
                running = [shard.rank for shard, run in both if run["state"] == "running"]
                raise TimeoutError(f"after {timeout:g} seconds these ranks still run: {running}")
            time.sleep(poll_interval)

    def _run_of(self, shard: Shard) -> Mapping[str, Any]:
        tag = self._tags[shard.rank]
        for run in self._call("workspace.ps", shard)["runs"]:
            if run["tag"] == tag:
                found: Mapping[str, Any] = run
                return found
        raise NoSuchThing(f"rank {shard.rank}: there is no run {tag!r} any more", 404)

    def _tell(self, tail: _Tail) -> None:
        """Progress is a courtesy: a cyberspace need not allow workspace.logs."""
        try:
            tail.show(self.logs(0, tail=_TAIL))
        except CybernetError:
            pass

    def _results(self, runs: Sequence[Mapping[str, Any]]) -> list[ShardResult]:
        results = [
            ShardResult(shard.rank, shard.node, run["tag"], run["exit_code"])
            for shard, run in zip(self.shards, runs, strict=True)
        ]
        if failed := [it for it in results if it.exit_code != 0]:
            shown = ", ".join(f"rank {it.rank} on {it.node}: {it.exit_code}" for it in failed)
            raise JobFailed(f"{len(failed)} of {len(results)} shards failed: {shown}", results)
        return results

    def logs(self, rank: int = 0, tail: int | None = None) -> str:
        """What a shard has written so far."""
        shard = self._shard(rank)
        tag = self._tags.get(rank, "main")
        return str(self._call("workspace.logs", shard, tag=tag, tail=tail)["text"])

    def fetch(
        self, path: str, target: str | Path, ranks: Sequence[int] | None = None
    ) -> list[Path]:
        """Bring a file or directory of each shard to `target/RANK`; where they are, by rank."""
        chosen = self._provisioned() if ranks is None else [self._shard(it) for it in ranks]

        def bring(shard: Shard) -> Path:
            place_for = Path(target) / str(shard.rank)
            try:
                archive = self._call("workspace.fetch", shard, path=path)["archive"]
                unpack(base64.b64decode(archive), place_for)
            except TooLarge:
                self._fetch_in_parts(shard, path, place_for)
            return place_for

        return self._each(chosen, bring)

    def _fetch_in_parts(self, shard: Shard, path: str, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target) as archive:
            with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
                self._gather(shard, path, tar)
            extract(archive, target)

    def _gather(self, shard: Shard, path: str, tar: tarfile.TarFile) -> None:
        """What is there as one tar, file by file and part by part: of any size."""
        found = self._call("workspace.fetch", shard, path=path, limit=_PART)
        top = tarfile.TarInfo(PurePosixPath(path).name)
        if found["size"] is not None:
            self._add(shard, path, top, found, tar)
            return
        top.type = tarfile.DIRTYPE
        tar.addfile(top)
        for entry in found["entries"]:
            info = tarfile.TarInfo(f"{top.name}/{entry['path']}")
            info.mtime, info.mode = entry["modified"], 0o755 if entry["executable"] else 0o644
            if entry["kind"] == "file":
                inner = f"{path}/{entry['path']}"
                part = self._call("workspace.fetch", shard, path=inner, limit=_PART)
                self._add(shard, inner, info, part, tar)
            elif entry["kind"] in _LINKS_AND_DIRECTORIES:
                info.type, info.linkname = _LINKS_AND_DIRECTORIES[entry["kind"]], entry["target"]
                tar.addfile(info)

    def _add(
        self, shard: Shard, path: str, info: tarfile.TarInfo, first: Any, tar: tarfile.TarFile
    ) -> None:
        """A file, of which the first part is here; what it gets longer meanwhile is left out."""
        info.size = first["size"] or 0
        with tempfile.SpooledTemporaryFile(_PART) as content:
            part = base64.b64decode(first["archive"])
            while part and content.tell() < info.size:
                content.write(part)
                offset = content.tell()
                if offset < info.size:
                    more = self._call(
                        "workspace.fetch", shard, path=path, offset=offset, limit=_PART
                    )
                    part = base64.b64decode(more["archive"])
            if content.tell() < info.size:
                raise OperationFailed(f"{path}: was cut off while it was fetched")
            content.seek(0)
            tar.addfile(info, content)

    def destroy(self) -> None:
        """Remove every workspace; NotCleanedUp names those that could not be removed."""
        complaints: dict[int, CybernetError] = {}

        def remove(shard: Shard) -> None:
            try:
                self._call("workspace.destroy", shard)
            except NoSuchThing:
                pass
            except CybernetError as error:
                complaints[shard.rank] = error

        self._each(self.shards, remove)
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

    def _call(self, operation: str, shard: Shard, **parameters: Any) -> Any:
        return self.client.call(operation, {"workspace": shard.workspace, **parameters})

    def _each(self, shards: Sequence[Shard], do: Callable[[Shard], T]) -> list[T]:
        """For all of them at once; the first failure is raised when all have ended."""
        if not shards:
            return []
        with ThreadPoolExecutor(min(_TOGETHER, len(shards))) as pool:
            return list(pool.map(do, shards))


class _Tail:
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


def _to_stderr(line: str) -> None:
    print(f"[rank 0] {line}", file=sys.stderr)
