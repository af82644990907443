"""The job launcher under many users: submissions at once, and lists of thousands of tasks."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench.fleet import Figure, FleetResult
from bench.frame import BenchFailed
from bench.rates import Target
from bench.settings import Settings
from bench.versions import versions
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.users import User
from tests.served_plane import ServedPlane
from tests.upstream.processes import Process, free_ports

_USERS, _EACH = 50, 10
_MANY = 5_000
_AT_ONCE = 16
_LISTS = 20
_PROGRAM = "from kvestigate.cli.main import k8s_cli; k8s_cli()"
_TASK = {
    "name": "training",
    "resources": {"cpus": "4+", "memory": 16, "accelerators": 1},
    "envs": {"EPOCHS": 100},
    "setup": "pip install torch",
    "run": "python train.py --epochs $EPOCHS",
}


def run(settings: Settings) -> FleetResult:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name:
        directory = Path(name)
        with ServedPlane(directory, "--memory") as served:
            plane = Target(
                "plane", served.port, served.ca_file, served.token, (served.processes[0].pid,)
            )
            for figure in asyncio.run(_figures(served, plane, directory)):
                settings.progress(f"{figure.name}: {figure.value:.2f} {figure.unit}")
                figures.append(figure)
    method = "one launcher before one plane in memory, each a process, over loopback"
    return FleetResult("jobs", method, versions("kvestigate"), figures)


async def _figures(served: ServedPlane, plane: Target, directory: Path) -> list[Figure]:
    with _Serve(served, directory) as server:
        launcher = Target("launcher", server.port, served.ca_file, "", (server.pid,))
        async with _users(server.url, _USERS) as users:
            found = [*await _crowd(users), *await _own_lists(users)]
            found.append(_memory("launcher after 500 tasks", server.pid, "<= 512 MB"))
            await _fill(users, _MANY - _USERS * _EACH)
            found += await _whole_list(users[0], launcher, plane)
            found.append(_memory("launcher after 5,000 tasks", server.pid, "<= 512 MB"))
    return found


async def _crowd(users: Sequence[Remote]) -> list[Figure]:
    took: list[float] = []

    async def submit(user: Remote) -> set[str]:
        made = set()
        for _ in range(_EACH):
            began = time.perf_counter()
            made.add((await user.submit(_TASK)).task_id)
            took.append(time.perf_counter() - began)
        return made

    began = time.perf_counter()
    made = await asyncio.gather(*(submit(user) for user in users))
    rate = len(took) / (time.perf_counter() - began)
    lost = foreign = 0
    for user, own in zip(users, made, strict=True):
        seen = {task.task_id for task in (await user.list_tasks(all_users=False)).tasks}
        lost += len(own - seen)
        foreign += len(seen - own)
    count = _USERS * _EACH
    return [
        Figure(f"{count} tasks of {_USERS} users at once", rate, "tasks/s", ""),
        Figure("submit, p50", _p(took, 50), "ms", ""),
        Figure("submit, p99", _p(took, 99), "ms", ""),
        Figure("tasks lost", lost, "", "0"),
        Figure("tasks seen by another user", foreign, "", "0"),
    ]


async def _own_lists(users: Sequence[Remote]) -> list[Figure]:
    took = []
    for user in users:
        began = time.perf_counter()
        await user.list_tasks(all_users=False)
        took.append(time.perf_counter() - began)
    return [
        Figure("list of one's own 10 of 500, p50", _p(took, 50), "ms", ""),
        Figure("list of one's own 10 of 500, p99", _p(took, 99), "ms", ""),
    ]


async def _whole_list(user: Remote, launcher: Target, plane: Target) -> list[Figure]:
    took = []
    before = launcher.cpu(), plane.cpu()
    for _ in range(_LISTS):
        began = time.perf_counter()
        listed = await user.list_tasks(all_users=True)
        took.append(time.perf_counter() - began)
        if len(listed.tasks) != _MANY:
            raise BenchFailed(f"{len(listed.tasks)} tasks are listed, not {_MANY}")
    ours, theirs = launcher.cpu() - before[0], plane.cpu() - before[1]
    return [
        Figure("list of 5,000 tasks, p50", _p(took, 50), "ms", "<= 300 ms"),
        Figure("list of 5,000 tasks, launcher CPU", ours / _LISTS * 1e3, "ms", ""),
        Figure("list of 5,000 tasks, API server CPU", theirs / _LISTS * 1e3, "ms", ""),
    ]


async def _fill(users: Sequence[Remote], count: int) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def submit(number: int) -> None:
        async with gate:
            await users[number % len(users)].submit(_TASK)

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(submit(number))


@asynccontextmanager
async def _users(url: str, count: int) -> AsyncIterator[list[Remote]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(Remote(url, User(f"user{number}@example.com")))
            for number in range(count)
        ]


class _Serve:
    """`k8s-cli serve` as users start it."""

    def __init__(self, served: ServedPlane, directory: Path) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-c", _PROGRAM, "serve", "--port", str(self.port)]
        command += ["--kubeconfig", str(served.kubeconfig)]
        self._process = Process("launcher", command, directory / "launcher.log")

    def __enter__(self) -> _Serve:
        self._process.start(lambda: "next: " in self._process.tail())
        self.pid = self._process.pid
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()


def _memory(name: str, pid: int, goal: str) -> Figure:
    fields = (Path("/proc") / str(pid) / "status").read_text().splitlines()
    (peak,) = [line.split()[1] for line in fields if line.startswith("VmHWM:")]
    return Figure(f"{name}, peak memory", int(peak) / 1e3, "MB", goal)


def _p(took: Sequence[float], percent: int) -> float:
    """Milliseconds."""
    ordered = sorted(took)
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] * 1e3
