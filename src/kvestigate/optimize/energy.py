"""The power that a fleet draws, what of it is wasted, and what that comes to in time. Pure.

The forecast is a straight line: the fleet keeps doing exactly what it does now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from kvestigate.optimize.activity import PRODUCTIVE, Activity, GpuWindow

HOURS_A_YEAR = 8766
"""365.25 days."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one figure over all GPUs that tell it."""

    min: float
    max: float
    mean: float
    median: float
    stddev: float
    count: int


@dataclass(frozen=True, slots=True)
class Waste:
    """What GPUs draw for having something loaded, beyond what idle ones draw."""

    watts: float
    gpus: int
    """That are reserved and idle."""
    drawn: float
    """Watts, by all of these."""
    baseline: float
    """Watts: the mean of the GPUs that are truly idle."""
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
    """What is saved if reserved GPUs were idle ones; None where no idle GPU tells the baseline."""


@dataclass(frozen=True, slots=True)
class Power:
    drawn: float
    """Watts."""
    limit: float
    by_activity: dict[str, float]
    """Watts; only classes that there are."""
    per_gpu: Spread | None
    temperature: Spread | None
    waste: Waste | None
    """None where no idle GPU tells the baseline."""
    forecast: Forecast

    @property
    def share(self) -> float:
        return self.drawn / self.limit if self.limit else 0.0

    @property
    def productive(self) -> float:
        """Watts of GPUs that compute."""
        return sum(self.by_activity.get(each.value, 0.0) for each in PRODUCTIVE)


def power(gpus: Sequence[GpuWindow]) -> Power:
    """Of GPUs that report."""
    drawn = sum(gpu.watts or 0.0 for gpu in gpus)
    limit = sum(gpu.limit_watts or 0.0 for gpu in gpus)
    split = {
        each.value: sum(gpu.watts or 0.0 for gpu in gpus if gpu.activity is each)
        for each in Activity
        if any(gpu.activity is each for gpu in gpus)
    }
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
            productive=energy(sum(split.get(each.value, 0.0) for each in PRODUCTIVE)),
            idle=energy(split.get(Activity.IDLE.value, 0.0)),
            reserved_idle=energy(split.get(Activity.RESERVED_IDLE.value, 0.0)),
            recoverable=None if lost is None else energy(lost.watts),
        ),
    )


def waste(gpus: Iterable[GpuWindow]) -> Waste | None:
    """None without an idle GPU: there is nothing to compare with."""
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
    told = [value for value in values if value is not None]
    if not told:
        return None
    deviation = stdev(told) if len(told) > 1 else 0.0
    return Spread(min(told), max(told), fmean(told), median(told), deviation, len(told))
