"""How benches measure and report: contenders race, medians and ratios come out.

A contender is a command. Each run is a process of its own, and the runs are interleaved, so
that a slow minute of the machine hits all contenders alike.
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

# A child's peak memory starts from that of the process it was forked from, so the commands
# are started by this small one instead of by us. It also ends those that take too long.
_STOPWATCH = """
import json, os, signal, sys, time
late = []
def give_up(*_):
    late.append(True)
    os.kill(pid, signal.SIGKILL)
signal.signal(signal.SIGALRM, give_up)
started = time.perf_counter()
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - started
code = os.waitstatus_to_exitcode(status)
figures = [wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss / 1024]
print(json.dumps([code, bool(late), figures]), file=sys.stderr)
"""
_GRACE = 60.0
"""For the stopwatch itself, beyond what it grants a command."""


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    answers: bool = False
    """Prints one line that must be the same for all contenders that do."""
    runs: int | None = None
    """At most so many, of one that takes minutes."""
    patience: float = 600.0
    """Seconds after which a run is ended, and has failed."""
    may_fail: bool = False
    """That it fails is a result, not the end of the race: a peer that needs too much memory."""


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
    failed: str = ""
    """How it ended, if not well: the figures are then what it had used by then."""


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
            if row.failed:
                lines.append(
                    f"  {'':{width}}  which {row.failed}: this is what it had used by then"
                )
        return "\n".join(lines)


class Report(Protocol):
    """What a bench found."""

    def as_json(self) -> dict[str, object]: ...

    def render(self) -> str:
        """For people: the method, then the figures with their ratios."""


class BenchFailed(Exception):
    pass


class ContenderFailed(BenchFailed):
    def __init__(self, name: str, how: str, sample: Sample, complaints: str) -> None:
        super().__init__(f"{name} {how}:\n{complaints}")
        self.how = how
        self.sample = sample
        """What it had used by then."""


Progress = Callable[[str], None]


def race(contenders: Sequence[Contender], runs: int, progress: Progress) -> list[Row]:
    samples: dict[str, list[Sample]] = {contender.name: [] for contender in contenders}
    failed: dict[str, ContenderFailed] = {}
    answers: dict[str, str] = {}
    for run in range(runs):
        for contender in contenders:
            name = contender.name
            if name in failed or (contender.runs is not None and run >= contender.runs):
                continue
            try:
                sample, output = measure(contender)
            except ContenderFailed as failure:
                if not contender.may_fail:
                    raise
                failed[name] = failure
                progress(f"run {run + 1}/{runs} {failure}")
                continue
            progress(f"run {run + 1}/{runs} {name}: {sample.wall:.2f} s")
            samples[name].append(sample)
            if contender.answers:
                answers[name] = output
    if len(set(answers.values())) > 1:
        raise BenchFailed(f"the contenders disagree about what they read: {answers}")
    return [
        _median(name, [failed[name].sample], failed[name].how)
        if name in failed
        else _median(name, taken)
        for name, taken in samples.items()
    ]


def measure(contender: Contender) -> tuple[Sample, str]:
    """One run, and what it printed if it answers."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            _STOPWATCH,
            str(contender.patience),
            *contender.command,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if contender.answers else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=dict(contender.environment) or None,
        text=True,
        timeout=contender.patience + _GRACE,
    )
    *complaints, last = done.stderr.strip().splitlines()
    code, late, figures = json.loads(last)
    sample = Sample(*figures)
    if code:
        how = _how(contender, code, late=late)
        raise ContenderFailed(contender.name, how, sample, "\n".join(complaints))
    return sample, (done.stdout or "").strip()


def _how(contender: Contender, code: int, *, late: bool) -> str:
    if late:
        return f"was ended after {contender.patience:.0f} s"
    if code == -signal.SIGKILL:
        return "was killed, as the kernel does when memory is used up"
    return f"ended with {code}"


def _median(name: str, samples: Sequence[Sample], failed: str = "") -> Row:
    return Row(
        name,
        statistics.median(sample.wall for sample in samples),
        statistics.median(sample.user for sample in samples),
        statistics.median(sample.system for sample in samples),
        statistics.median(sample.peak for sample in samples),
        len(samples),
        failed,
    )


def _ratios(row: Row, ours: Row) -> dict[str, float]:
    return {
        "wall": row.wall / ours.wall,
        "cpu": (row.user + row.system) / (ours.user + ours.system),
        "peak": row.peak / ours.peak,
    }
