"""How benches measure and report: contenders race, medians and ratios come out.

A contender is a command. Each run is a process of its own, and the runs are interleaved, so
that a slow minute of the machine hits all contenders alike.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

# A child's peak memory starts from that of the process it was forked from, so the commands
# are started by this small one instead of by us.
_STOPWATCH = """
import json, os, sys, time
started = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - started
code = os.waitstatus_to_exitcode(status)
print(json.dumps([code, wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss]), file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    answers: bool = False
    """Prints one line that must be the same for all contenders that do."""


@dataclass(frozen=True, slots=True)
class Sample:
    wall: float
    user: float
    system: float
    peak: float
    """MiB resident at most."""


@dataclass(frozen=True, slots=True)
class Row:
    """The medians of one contender."""

    name: str
    wall: float
    user: float
    system: float
    peak: float
    runs: int


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    method: str
    versions: Mapping[str, str]
    rows: Sequence[Row]
    """Ours first: the ratios are of the others to it."""

    def as_json(self) -> dict[str, object]:
        ours = self.rows[0]
        rows = [asdict(row) | {"ratios": _ratios(row, ours)} for row in self.rows]
        return {
            "name": self.name,
            "method": self.method,
            "versions": dict(self.versions),
            "rows": rows,
        }

    def render(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [f"{self.name}: {self.method}"]
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in self.versions.items()))
        lines.append(f"  {'':{width}}  {'wall s':>15}  {'user+sys s':>15}  {'peak MiB':>15}")
        ours = self.rows[0]
        for row in self.rows:
            ratios = _ratios(row, ours)
            cells = [
                f"{value:8.3f} {ratios[name]:5.1f}x"
                for name, value in (("wall", row.wall), ("cpu", row.user + row.system))
            ]
            cells.append(f"{row.peak:8.0f} {ratios['peak']:5.1f}x")
            lines.append(f"  {row.name:{width}}  " + "  ".join(cells))
        return "\n".join(lines)


class Report(Protocol):
    """What a bench found."""

    def as_json(self) -> dict[str, object]: ...

    def render(self) -> str:
        """For people: the method, then the figures with their ratios."""


class BenchFailed(Exception):
    pass


Progress = Callable[[str], None]


def race(contenders: Sequence[Contender], runs: int, progress: Progress) -> list[Row]:
    samples: dict[str, list[Sample]] = {contender.name: [] for contender in contenders}
    answers: dict[str, str] = {}
    for run in range(runs):
        for contender in contenders:
            sample, output = measure(contender)
            progress(f"run {run + 1}/{runs} {contender.name}: {sample.wall:.2f} s")
            samples[contender.name].append(sample)
            if contender.answers:
                answers[contender.name] = output
    if len(set(answers.values())) > 1:
        raise BenchFailed(f"the contenders disagree about what they read: {answers}")
    return [_median(name, taken) for name, taken in samples.items()]


def measure(contender: Contender) -> tuple[Sample, str]:
    """One run, and what it printed if it answers."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _STOPWATCH, *contender.command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if contender.answers else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=dict(contender.environment) or None,
        text=True,
        timeout=600,
    )
    *complaints, last = done.stderr.strip().splitlines()
    code, wall, user, system, peak = json.loads(last)
    if code:
        raise BenchFailed(f"{contender.name} ended with {code}:\n" + "\n".join(complaints))
    return Sample(wall, user, system, peak / 1024), (done.stdout or "").strip()


def _median(name: str, samples: Sequence[Sample]) -> Row:
    return Row(
        name,
        statistics.median(sample.wall for sample in samples),
        statistics.median(sample.user for sample in samples),
        statistics.median(sample.system for sample in samples),
        statistics.median(sample.peak for sample in samples),
        len(samples),
    )


def _ratios(row: Row, ours: Row) -> dict[str, float]:
    return {
        "wall": row.wall / ours.wall,
        "cpu": (row.user + row.system) / (ours.user + ours.system),
        "peak": row.peak / ours.peak,
    }
