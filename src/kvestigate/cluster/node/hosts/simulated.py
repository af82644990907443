"""The simulated host: containers that exist as records and end by the clock. No processes.

A container runs forever unless it says otherwise: `sleep N`, `true`, `false`, or the variables
`SIMULATE_SECONDS` and `SIMULATE_EXIT_CODE`. It uses what `SIMULATE_CPU` and `SIMULATE_MEMORY`
say (`500m`, `2Gi`), else nothing. A few commands can be run in it, as a script says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
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
    """A line or two, in memory."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lines: list[tuple[float, str]] = []
        self._over = False
        self._followers: list[asyncio.Future[None]] = []

    def write(self, line: str) -> None:
        self._lines.append((self._now(), line))

    def end(self) -> None:
        self._over = True
        for follower in self._followers:
            if not follower.done():
                follower.set_result(None)

    async def read(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        lines = [line for line in self._lines if query.since is None or line[0] >= query.since]
        if query.tail is not None:
            lines = lines[-query.tail :] if query.tail else []
        for at, line in lines:
            text = f"{timestamp(at)} {line}\n" if query.timestamps else f"{line}\n"
            yield text.encode()
        if query.follow and not self._over:
            follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._followers.append(follower)
            try:
                await follower
            finally:
                self._followers.remove(follower)

    def last(self, lines: int, most: int) -> bytes:
        kept = self._lines[-lines:] if lines else []
        return "".join(f"{line}\n" for _, line in kept).encode()[-most:]

    def tap(self) -> Tap:
        tap = Tap(lambda _: None)
        if self._over:
            tap.end()
        return tap


class SimulatedProcess:
    """A run that a timer ends, or that runs until it is stopped."""

    def __init__(self, launch: Launch, clock: Clock, started_at: float | None = None) -> None:
        self.key: RunKey = launch.key
        self.env = dict(launch.env)
        self.hostname = launch.hostname
        self.started_at = clock.now() if started_at is None else started_at
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.log = SimulatedLog(clock.now)
        self._clock = clock
        self._timer: asyncio.Task[None] | None = None
        length = lifetime(launch)
        if length is not None:
            left = max(0.0, self.started_at + length[0] - clock.now())
            self._timer = asyncio.ensure_future(self._end_after(left, length[1]))

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

    async def _end_after(self, seconds: float, code: int) -> None:
        await self._clock.sleep(seconds)
        self._timer = None
        self._end(code)

    def _end(self, code: int) -> None:
        self.stop_timer()
        if not self.ended.done():
            self.log.end()
            self.ended.set_result(Ending(code, at=self._clock.now()))


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
        words = " ".join(launch.argv) or "the image's own command"
        process.log.write(f"simulated: {words}")
        self._running[process.key.id] = process
        process.ended.add_done_callback(lambda _: self._running.pop(process.key.id, None))
        return process

    def shortfalls(self, launch: Launch) -> list[str]:
        return []  # nothing runs that could be refused anything

    async def adopt(self) -> list[Process]:
        return []

    def resume(self, launch: Launch, started_at: float, ended: Ending | None = None) -> Process:
        """A run of an earlier host, of which a pod's status tells."""
        process = SimulatedProcess(launch, self._clock, started_at)
        if ended is not None:
            process.stop_timer()
            process.log.end()
            process.ended.set_result(ended)
            return process
        self._running[process.key.id] = process
        process.ended.add_done_callback(lambda _: self._running.pop(process.key.id, None))
        return process

    async def enter(
        self, process: Process, argv: tuple[str, ...], *, tty: bool, stdin: bool
    ) -> ScriptedSession:
        assert isinstance(process, SimulatedProcess)
        if argv[0] == "chroot" and len(argv) > 2:
            argv = argv[2:]  # there are no files, so every root is the same
        name = argv[0].rpartition("/")[2]
        script = self._scripts.get(name)
        if script is None:
            raise LaunchFailed(
                "ContainerCannotRun",
                f'exec: "{argv[0]}": this container is simulated and knows only '
                f"{', '.join(sorted(self._scripts))}",
            )
        env = {"HOSTNAME": process.hostname, **process.env}
        return ScriptedSession(*script(argv[1:], env))

    def resize(self, process: Process, ceiling: Ceiling) -> None:
        pass

    async def forget(self, pod_uid: str) -> None:
        pass

    def usage(self, process: Process) -> Usage:
        return simulated_usage(process.env, self._clock.now() - process.started_at)

    async def install_gpus(self, gpus: Sequence[Gpu]) -> None:
        self._scripts["nvidia-smi"] = self._nvidia_smi
        self.show_gpus(gpus)

    def show_gpus(self, gpus: Sequence[Gpu]) -> None:
        self._gpus = tuple(gpus)

    def _nvidia_smi(self, arguments: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
        seen = smi.visible(self._gpus, env.get(VARIABLE))
        return smi.answer(arguments, seen, self._clock.now())


def lifetime(launch: Launch) -> tuple[float, int] | None:
    """How long a container runs and how it ends; None for one that never does: PURE."""
    code = launch.env.get("SIMULATE_EXIT_CODE", "0")
    seconds = launch.env.get("SIMULATE_SECONDS")
    if seconds is not None:
        return float(seconds), int(code)
    match launch.argv:
        case ("sleep", length) if length.replace(".", "", 1).isdigit():
            return float(length), int(code)
        case ("true",):
            return 0.0, 0
        case ("false",):
            return 0.0, 1
    return None


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
