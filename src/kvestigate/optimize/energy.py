"""The power that a fleet draws, the part that is wasted, and an energy forecast. Pure.

The forecast assumes that power stays as measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from kvestigate.optimize.activity import PRODUCTIVE, Activity, GpuWindow

UNKNOWN = "unknown"
HOURS_A_YEAR = 8766
"""365.25 days."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of one measurement over all GPUs that report it."""

    min: float
    max: float
    mean: float
    median: float
    stddev: float
    count: int


@dataclass(frozen=True, slots=True)
class Waste:
    """Power of reserved-idle GPUs beyond what idle GPUs draw."""

    watts: float
    gpus: int
    """The number of reserved-idle GPUs."""
    drawn: float
    """Watts drawn by the reserved-idle GPUs."""
    baseline: float
    """Watts: the mean of the idle GPUs."""
    baseline_gpus: int


@dataclass(frozen=True, slots=True)
class Energy:
    """Kilowatt-hours."""

    month: float
    quarter: float
    year: float


@dataclass(frozen=True, slots=True)
class Forecast:
    ceiling: Energy
    """Every GPU at its limit."""
    observed: Energy
    productive: Energy
    idle: Energy
    reserved_idle: Energy
    recoverable: Energy | None
    """Saved if reserved-idle GPUs were idle; None without an idle GPU to compare with."""


@dataclass(frozen=True, slots=True)
class Power:
    drawn: float
    """Watts."""
    limit: float
    by_activity: dict[str, float]
    """Activity -> watts; only activities that occur. `unknown` are GPUs that do not report their
    utilization, as with MIG."""
    per_gpu: Spread | None
    temperature: Spread | None
    waste: Waste | None
    """None without an idle GPU to compare with."""
    forecast: Forecast

    @property
    def share(self) -> float:
        return self.drawn / self.limit if self.limit else 0.0

    @property
    def productive(self) -> float:
        """Watts of GPUs that compute."""
        return sum(self.by_activity.get(activity.value, 0.0) for activity in PRODUCTIVE)


def power(gpus: Sequence[GpuWindow]) -> Power:
    """The power of GPUs, whether or not they report their utilization."""
    drawn = sum(gpu.watts or 0.0 for gpu in gpus)
    limit = sum(gpu.limit_watts or 0.0 for gpu in gpus)
    split = {
        activity.value: sum(gpu.watts or 0.0 for gpu in gpus if gpu.activity is activity)
        for activity in Activity
        if any(gpu.activity is activity for gpu in gpus)
    }
    silent = [gpu.watts or 0.0 for gpu in gpus if gpu.activity is None]
    if any(silent):
        split[UNKNOWN] = sum(silent)
    lost = waste(gpus)
    return Power(
        drawn=drawn,
        limit=limit,
        by_activity=split,
        per_gpu=spread(gpu.watts for gpu in gpus),
        temperature=spread(gpu.temperature for gpu in gpus),
        waste=lost,
        forecast=Forecast(
            ceiling=energy(limit),
            observed=energy(drawn),
            productive=energy(sum(split.get(activity.value, 0.0) for activity in PRODUCTIVE)),
            idle=energy(split.get(Activity.IDLE.value, 0.0)),
            reserved_idle=energy(split.get(Activity.RESERVED_IDLE.value, 0.0)),
            recoverable=None if lost is None else energy(lost.watts),
        ),
    )


def waste(gpus: Iterable[GpuWindow]) -> Waste | None:
    """None without an idle GPU to compare with."""
    drawn: dict[Activity, list[float]] = {Activity.IDLE: [], Activity.RESERVED_IDLE: []}
    for gpu in gpus:
        if gpu.activity in drawn and gpu.watts is not None:
            drawn[gpu.activity].append(gpu.watts)
    idle, reserved = drawn[Activity.IDLE], drawn[Activity.RESERVED_IDLE]
    if not idle:
        return None
    baseline = fmean(idle)
    lost = max(sum(reserved) - baseline * len(reserved), 0.0)
    return Waste(lost, len(reserved), sum(reserved), baseline, len(idle))


def energy(watts: float) -> Energy:
    year = watts * HOURS_A_YEAR / 1000
    return Energy(month=year / 12, quarter=year / 4, year=year)


def spread(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    deviation = stdev(known) if len(known) > 1 else 0.0
    return Spread(min(known), max(known), fmean(known), median(known), deviation, len(known))
