"""The simulated host: containers that exist as records and end by the clock. No processes.

A container does what its command says as far as `playing` understands it (shell scripts, `sleep`,
`echo`, `exit`), and runs forever otherwise. The variables `SIMULATE_SECONDS` and
`SIMULATE_EXIT_CODE` say something else. It uses what `SIMULATE_CPU` and `SIMULATE_MEMORY` say
(`500m`, `2Gi`), else nothing, and is killed for memory beyond its limit. A few commands can be run
in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path

from kvestigate.aio.clock import Clock
from kvestigate.cluster.node.gpu import smi
from kvestigate.cluster.node.gpu.model import VARIABLE, Gpu
from kvestigate.cluster.node.hosts.interface import (
    Ceiling,
    Ending,
    Facts,
    Launch,
    LaunchFailed,
    Process,
    RunKey,
    Usage,
)
from kvestigate.cluster.node.hosts.logs import STDOUT, LogQuery, Tap, timestamp
from kvestigate.cluster.node.playing.play import PROGRAMS, Line, Performance, play
from kvestigate.errors import InputError
from kvestigate.kube import quantities

RUNTIME = "kvestigate-simulated://1"
FACTS = Facts(
    os_image="Simulated Linux",
    kernel="6.8.0-simulated",
    architecture="amd64",
    operating_system="linux",
    runtime=RUNTIME,
    boot_id="00000000-0000-0000-0000-000000000000",
    machine_id="0" * 32,
    cpu=32,
    memory=128 * 1024**3,
    disk=1024**4,
    limits=("containers are simulated: no process runs",),
)

Script = Callable[[Sequence[str], Mapping[str, str]], tuple[int, str]]
"""Arguments and environment -> exit code and output."""


class SimulatedLog:
    """The lines of a performance, as far as its time has come."""

    def __init__(self, performance: Performance, started_at: float, clock: Clock) -> None:
        self._lines = [(started_at + line.at, line) for line in performance.lines]
        self._clock = clock
        self._over = False
        self._ended_at: float | None = None
        self._followers: list[asyncio.Future[None]] = []

    def end(self, at: float) -> None:
        self._over, self._ended_at = True, at
        for follower in self._followers:
            _wake(follower)

    def _until_now(self) -> list[tuple[float, Line]]:
        until = self._clock.now() if self._ended_at is None else self._ended_at
        return [line for line in self._lines if line[0] <= until]

    async def read(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        due = self._until_now()
        lines = [
            line
            for line in due
            if (query.since is None or line[0] >= query.since)
            and query.stream in ("", line[1].stream)
        ]
        if query.tail is not None:
            lines = lines[-query.tail :] if query.tail else []
        left = query.limit_bytes
        for at, line in lines:
            text = _shown(at, line, query)
            yield text if left is None else text[:left]
            left = None if left is None else max(0, left - len(text))
        shown = len(due)
        while query.follow and not self._over:
            await self._next(shown)
            due = self._until_now()
            for at, line in due[shown:]:
                yield _shown(at, line, query)
            shown = len(due)

    async def _next(self, shown: int) -> None:
        """Wait until the next line is due or the run is over."""
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers.append(follower)
        alarm = None
        if shown < len(self._lines):
            pause = max(0.0, self._lines[shown][0] - self._clock.now())
            alarm = self._clock.call_later(pause, partial(_wake, follower))
        try:
            await follower
        finally:
            self._followers.remove(follower)
            if alarm is not None:
                alarm.cancel()

    def last(self, lines: int, most: int) -> bytes:
        kept = self._until_now()[-lines:] if lines else []
        return "".join(f"{line.text}\n" for _, line in kept).encode()[-most:]

    def tap(self) -> Tap:
        tap = Tap(lambda _: None)
        if self._over:
            tap.end()
        return tap


def _shown(at: float, line: Line, query: LogQuery) -> bytes:
    text = f"{timestamp(at)} {line.text}\n" if query.timestamps else f"{line.text}\n"
    return text.encode()


def _wake(follower: asyncio.Future[None]) -> None:
    if not follower.done():
        follower.set_result(None)


class SimulatedProcess:
    """A run that a timer ends, or that runs until it is stopped."""

    def __init__(
        self,
        launch: Launch,
        clock: Clock,
        started_at: float | None = None,
        *,
        timed: bool = True,
    ) -> None:
        """`timed`: whether it ends by itself when its time has come."""
        self.key: RunKey = launch.key
        self.env = dict(launch.env)
        self.hostname = launch.hostname
        self.started_at = clock.now() if started_at is None else started_at
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        performance = performance_of(launch)
        self.log = SimulatedLog(performance, self.started_at, clock)
        self._clock = clock
        self._timer: asyncio.Task[None] | None = None
        if timed and performance.ends_at is not None:
            left = max(0.0, self.started_at + performance.ends_at - clock.now())
            starved = is_starved(launch)
            self._timer = asyncio.ensure_future(self._end_after(left, performance.code, starved))

    def signal(self, number: int) -> None:
        self._end(128 + number)

    def kill(self) -> None:
        self._end(137)

    def write_stdin(self, data: bytes) -> None:
        pass

    def close_stdin(self) -> None:
        pass

    def resize(self, width: int, height: int) -> None:
        pass

    def stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def _end_after(self, seconds: float, code: int, starved: bool) -> None:
        await self._clock.sleep(seconds)
        self._timer = None
        self._end(code, starved)

    def _end(self, code: int, starved: bool = False) -> None:
        self.stop_timer()
        if not self.ended.done():
            now = self._clock.now()
            self.log.end(now)
            self.ended.set_result(Ending(code, out_of_memory=starved, at=now))


class ScriptedSession:
    """A command whose output was known before it ran."""

    def __init__(self, code: int, output: str) -> None:
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.ended.set_result(Ending(code))
        self._output = output.encode()

    async def read(self) -> tuple[str, bytes] | None:
        if not self._output:
            return None
        output, self._output = self._output, b""
        return STDOUT, output

    async def write(self, data: bytes) -> None:
        pass

    def close_stdin(self) -> None:
        pass

    def resize(self, width: int, height: int) -> None:
        pass

    def kill(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


class SimulatedHost:
    """A node without a machine."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scripts = dict(SCRIPTS)
        self._running: dict[str, SimulatedProcess] = {}
        self._gpus: tuple[Gpu, ...] = ()

    @property
    def volumes_root(self) -> Path | None:
        return None

    async def open(self) -> None:
        pass

    async def close(self, *, keep: bool) -> None:
        for process in self._running.values():
            process.stop_timer()

    def facts(self) -> Facts:
        return FACTS

    async def start(self, launch: Launch) -> Process:
        process = SimulatedProcess(launch, self._clock)
        self._running[process.key.id] = process
        process.ended.add_done_callback(lambda _: self._running.pop(process.key.id, None))
        return process

    def shortfalls(self, launch: Launch) -> list[str]:
        return []  # nothing runs that could be refused anything

    async def adopt(self) -> list[Process]:
        return []

    def resume(self, launch: Launch, started_at: float, ended: Ending | None = None) -> Process:
        """A run of an earlier host, of which a pod's status tells."""
        process = SimulatedProcess(launch, self._clock, started_at, timed=ended is None)
        if ended is not None:
            process.log.end(ended.at)
            process.ended.set_result(ended)
            return process
        self._running[process.key.id] = process
        process.ended.add_done_callback(lambda _: self._running.pop(process.key.id, None))
        return process

    def recall(self, launch: Launch, started_at: float, now: float) -> Process:
        """A run that goes on elsewhere: its log is as long as it is now."""
        process = SimulatedProcess(launch, self._clock, started_at, timed=False)
        process.log.end(now)
        return process

    async def enter(
        self, process: Process, argv: tuple[str, ...], *, tty: bool, stdin: bool
    ) -> ScriptedSession:
        assert isinstance(process, SimulatedProcess)
        if argv[0] == "chroot" and len(argv) > 2:
            argv = argv[2:]  # there are no files, so every root is the same
        name = argv[0].rpartition("/")[2]
        script = self._scripts.get(name)
        env = {"HOSTNAME": process.hostname, **process.env}
        if script is not None:
            return ScriptedSession(*script(argv[1:], env))
        played = play(argv, env)
        if played.ends_at is None:
            raise LaunchFailed(
                "ContainerCannotRun",
                f'exec: "{argv[0]}": this container is simulated and knows only '
                f"{', '.join(sorted({*self._scripts, *PROGRAMS}))}",
            )
        return ScriptedSession(played.code, "".join(f"{line.text}\n" for line in played.lines))

    def resize(self, process: Process, ceiling: Ceiling) -> None:
        pass

    async def forget(self, pod_uid: str) -> None:
        pass

    def usage(self, process: Process) -> Usage:
        return simulated_usage(process.env, self._clock.now() - process.started_at)

    async def install_gpus(self, gpus: Sequence[Gpu]) -> None:
        self._scripts["nvidia-smi"] = self._nvidia_smi
        self.show_gpus(gpus)

    async def show_memory(self, amount: int) -> None:
        pass

    def show_gpus(self, gpus: Sequence[Gpu]) -> None:
        self._gpus = tuple(gpus)

    def _nvidia_smi(self, arguments: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
        seen = smi.visible(self._gpus, env.get(VARIABLE))
        return smi.answer(arguments, seen, self._clock.now())


def performance_of(launch: Launch) -> Performance:
    """What a container does: PURE."""
    seconds = _number(launch.env.get("SIMULATE_SECONDS"))
    code = int(_number(launch.env.get("SIMULATE_EXIT_CODE")) or 0) & 0xFF
    played = play(launch.argv, launch.env, [bind.target for bind in launch.binds])
    if not played.lines:
        words = " ".join(launch.argv) or "the image's own command"
        played = replace(played, lines=(Line(0.0, STDOUT, f"simulated: {words}"),))
    if seconds is not None:
        return replace(played, ends_at=seconds, code=code)
    if is_starved(launch):
        return replace(played, ends_at=1.0, code=137)
    if code and played.ends_at is not None:
        return replace(played, code=code)
    return played


def is_starved(launch: Launch) -> bool:
    """Whether a container uses more memory than its limit: PURE."""
    limit = launch.ceiling.memory
    return limit is not None and simulated_usage(launch.env, 0.0).memory_bytes > limit


def _number(text: str | None) -> float | None:
    try:
        number = None if text is None else float(text)
    except ValueError:
        return None  # whoever wrote nonsense is not simulated
    return number if number is None or isfinite(number) else None


def simulated_usage(env: Mapping[str, str], seconds: float) -> Usage:
    """What a container has used after running so long: PURE."""
    cpu, memory = env.get("SIMULATE_CPU", "0"), env.get("SIMULATE_MEMORY", "0")
    try:
        return Usage(quantities.as_float(cpu) * seconds, quantities.whole(memory))
    except InputError:
        return Usage()  # whoever wrote nonsense sees none


def _uname(arguments: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
    name = env["HOSTNAME"]
    if "-a" in arguments:
        return 0, f"Linux {name} 6.8.0-simulated #1 SMP x86_64 GNU/Linux\n"
    words = {"-r": "6.8.0-simulated", "-n": name, "-m": "x86_64", "-s": "Linux"}
    return 0, " ".join(words.get(flag, "") for flag in arguments or ("-s",)) + "\n"


def _df(arguments: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
    return 0, (
        "Filesystem     1K-blocks      Used Available Use% Mounted on\n"
        "overlay       1073741824 322122547 751619277  30% /\n"
    )


SCRIPTS: dict[str, Script] = {
    "df": _df,
    "echo": lambda arguments, _: (0, " ".join(arguments) + "\n"),
    "false": lambda *_: (1, ""),
    "hostname": lambda _, env: (0, f"{env['HOSTNAME']}\n"),
    "true": lambda *_: (0, ""),
    "uname": _uname,
}
