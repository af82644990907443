"""Servers under the same load: requests a second, and what each costs the server."""

from __future__ import annotations

import os
import ssl
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from bench.frame import BenchFailed
from bench.load import Job, Outcome
from tests.upstream.judge import Judge

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Target:
    """A server with its processes."""

    name: str
    port: int
    ca: Path
    token: str
    pids: tuple[int, ...]

    def judge(self) -> Judge:
        context = ssl.create_default_context(cafile=str(self.ca))
        return Judge(self.port, context, token=self.token)

    def cpu(self) -> float:
        """Seconds that its processes have worked."""
        return sum(_cpu(pid) for pid in self.pids)

    def resident(self) -> int:
        """Bytes of memory that its processes hold."""
        return sum(_resident(pid) for pid in self.pids)


@dataclass(frozen=True, slots=True)
class Rate:
    """The medians of one server under one load."""

    load: str
    target: str
    per_second: float
    ratio: float
    """How many times as much ours did in the same round, so that a slow one is slow for both."""
    cpu_us: float
    """What one unit costs the server."""
    median_ms: float
    p99_ms: float
    runs: int


@dataclass(frozen=True, slots=True)
class RateResult:
    name: str
    method: str
    versions: Mapping[str, str]
    rates: Sequence[Rate]

    def as_json(self) -> dict[str, object]:
        rows = [asdict(rate) for rate in self.rates]
        versions = dict(self.versions)
        return {"name": self.name, "method": self.method, "versions": versions, "rows": rows}

    def render(self) -> str:
        wide, narrow = (max(map(len, names)) for names in (self._targets(), self._loads()))
        lines = [f"{self.name}: {self.method}"]
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in self.versions.items()))
        titles = f"{'per s':>10}  {'ours':>6}  {'CPU us':>9}  {'p50 ms':>8}  {'p99 ms':>8}"
        lines.append(f"  {'':{narrow}}  {'':{wide}}  {titles}")
        for rate in self.rates:
            figures = (
                f"{rate.per_second:10,.0f}  {rate.ratio:5.1f}x  {rate.cpu_us:9,.1f}  "
                f"{rate.median_ms:8.1f}  {rate.p99_ms:8.1f}"
            )
            lines.append(f"  {rate.load:{narrow}}  {rate.target:{wide}}  {figures}")
        return "\n".join(lines)

    def _targets(self) -> list[str]:
        return [rate.target for rate in self.rates]

    def _loads(self) -> list[str]:
        return [rate.load for rate in self.rates]


@dataclass(frozen=True, slots=True)
class Measured:
    outcome: Outcome
    cpu: float
    """Seconds that the server worked."""

    @property
    def per_second(self) -> float:
        return self.outcome.requests / self.outcome.seconds


_PATIENCE = 600.0


def drive(target: Target, job: Job, *, patience: float = _PATIENCE) -> Measured:
    """One job by a generator of its own, which is ended after so many seconds of `patience`."""
    command = [sys.executable, "-m", "bench.load"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as generator,
        _ended_after(patience, generator),
    ):
        assert generator.stdin is not None
        assert generator.stdout is not None
        generator.stdin.write(msgspec.json.encode(job) + b"\n")
        generator.stdin.flush()
        if generator.stdout.readline() != b"ready\n":
            raise BenchFailed(f"{target.name}: the generator could not start")
        before = target.cpu()
        generator.stdin.write(b"\n")
        generator.stdin.flush()
        answer = generator.stdout.readline()
        cpu = target.cpu() - before
    if not answer:
        raise BenchFailed(f"{target.name}: {job.method} {job.path} failed")
    return Measured(msgspec.json.decode(answer, type=Outcome), cpu)


@contextmanager
def _ended_after(seconds: float, process: subprocess.Popen[bytes]) -> Iterator[None]:
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def compared(load: str, rounds: Mapping[str, Sequence[Measured]], units: int = 1) -> list[Rate]:
    """What each target did in each round, ours first.

    `units` is how many of what is counted come of one request: events, say.
    """
    ours, *_ = rounds.values()
    return [_rate(load, target, taken, ours, units) for target, taken in rounds.items()]


def _rate(
    load: str, target: str, taken: Sequence[Measured], ours: Sequence[Measured], units: int
) -> Rate:
    pairs = zip(ours, taken, strict=True)
    return Rate(
        load,
        target,
        statistics.median(each.per_second * units for each in taken),
        statistics.median(mine.per_second / each.per_second for mine, each in pairs),
        statistics.median(each.cpu * 1e6 / (each.outcome.requests * units) for each in taken),
        statistics.median(each.outcome.median_ms for each in taken),
        statistics.median(each.outcome.p99_ms for each in taken),
        len(taken),
    )


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
