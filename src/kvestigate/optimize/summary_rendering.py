"""The aggregate of a probe and its energy forecast, as blocks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvestigate.optimize.activity import GpuWindow, Readiness, Verdict
from kvestigate.optimize.energy import Energy, Power, Spread
from kvestigate.optimize.summary import Summary
from kvestigate.render.blocks import Block, Cell, Facts, Field, Tone, table, text

_READY = {
    Readiness.IDLE: "safe to drain",
    Readiness.RESERVED_IDLE: "loaded, no activity: consolidate",
    Readiness.RESERVED_ACTIVE: "some activity: ask the owners",
}
_MEGA = 10_000
"""Kilowatt-hours a year from which the forecast is in megawatt-hours."""


def summary_facts(summary: Summary) -> Facts:
    power = summary.power
    pairs: list[tuple[str, str | Cell]] = [("GPUs", _stated(summary))]
    if summary.mean_utilization is not None:
        idle = 100 - summary.mean_utilization
        pairs += [
            (
                "compute",
                f"mean SM util {summary.mean_utilization:.1f}% (idle headroom ~{idle:.1f}%)",
            ),
        ]
    if summary.measured:
        pairs += [("memory", _memory(summary)), ("power", _power(power))]
    if summary.activity:
        pairs.append(("activity tally (per GPU)", _counts(summary.activity)))
    if power.per_gpu is not None:
        pairs.append(("power per GPU (W)", _spread(power.per_gpu)))
    if power.temperature is not None:
        pairs.append(("temp per GPU (°C)", _spread(power.temperature)))
    if power.drawn:
        pairs.append(("power split by activity", _split(power)))
    if summary.reporting:
        pairs.append(("wasted power", _waste(power)))
    pairs += [
        (
            "verdicts",
            _counts({verdict.value: summary.verdicts[verdict.value] for verdict in Verdict}),
        ),
        ("drain-readiness", f"{_readiness(summary)} (of nodes that are not active)"),
    ]
    return Facts(pairs)


def _stated(summary: Summary) -> str:
    share = summary.allocated / summary.capacity if summary.capacity else 0.0
    return (
        f"{summary.allocated} of {summary.capacity} allocated ({share:.1%}), "
        f"{summary.reporting} on {summary.reporting_nodes} nodes report utilization"
    )


def _memory(summary: Summary) -> str:
    share = summary.memory_mib / summary.memory_total_mib if summary.memory_total_mib else 0.0
    size = _of(summary.memory_mib, summary.memory_total_mib)
    return f"{size} in use ({share:.1%} of the fleet's GPU memory, {1 - share:.1%} free)"


def _power(power: Power) -> str:
    drawn = f"{watts(power.drawn)} ({power.share:.1%}) drawn of {watts(power.limit)} TDP"
    return f"{drawn} (headroom ~{1 - power.share:.1%})"


def _spread(spread: Spread) -> str:
    figures = ("min", "max", "mean", "median", "stddev")
    values = " ".join(f"{name}={getattr(spread, name):.0f}" for name in figures)
    return f"{values} (N={spread.count})"


def _split(power: Power) -> str:
    return " ".join(
        f"{name}={watts(drawn)} ({drawn / power.drawn:.1%})"
        for name, drawn in power.by_activity.items()
    )


def _waste(power: Power) -> str:
    waste = power.waste
    if waste is None:
        return "unknown (no GPU is idle, so there is no baseline)"
    return (
        f"{watts(waste.watts)} across {waste.gpus} reserved-idle GPUs "
        f"(idle baseline {watts(waste.baseline)} = mean of {waste.baseline_gpus} idle GPUs; "
        f"reserved-idle draw {watts(waste.drawn)})"
    )


def _readiness(summary: Summary) -> str:
    return "  ".join(
        f"{readiness.value}={summary.readiness[readiness.value]} ({meaning})"
        for readiness, meaning in _READY.items()
    )


def _counts(counts: dict[str, int]) -> str:
    return " ".join(f"{name}={count}" for name, count in counts.items())


def forecast_blocks(power: Power) -> Sequence[Block]:
    """Empty if no GPU reports its power."""
    if not power.limit:
        return []
    forecast = power.forecast
    big = forecast.ceiling.year >= _MEGA
    unit = "MWh" if big else "kWh"
    observed = f"{power.share:.1%} of TDP, {_part(power.productive, power)} productive"
    lines: list[tuple[str, Energy, str]] = [
        ("TDP ceiling", forecast.ceiling, "every GPU at its power limit"),
        ("observed draw", forecast.observed, observed),
        ("productive", forecast.productive, "GPUs that are light, active or saturated"),
        ("idle baseline", forecast.idle, "GPUs that are idle"),
        ("reserved-idle", forecast.reserved_idle, "GPUs that are reserved-idle"),
    ]
    if forecast.recoverable is not None and power.waste is not None:
        part = _part(power.waste.watts, power)
        why = f"saved if reserved-idle GPUs were idle; {part} of observed"
        lines.append(("-> recoverable", forecast.recoverable, why))
    scale = 1000 if big else 1
    return [
        text("energy forecast (if power stays as measured)", Tone.STRONG),
        table(
            lines,
            Field("energy", lambda line: line[0]),
            Field(f"month {unit}", lambda line: f"{line[1].month / scale:.2f}", number=True),
            Field(f"quarter {unit}", lambda line: f"{line[1].quarter / scale:.2f}", number=True),
            Field(f"year {unit}", lambda line: f"{line[1].year / scale:.2f}", number=True),
            Field("meaning", lambda line: line[2]),
        ),
    ]


def _part(drawn: float, power: Power) -> str:
    return f"{drawn / power.drawn:.1%}" if power.drawn else "0.0%"


def memory_of(gpus: Iterable[GpuWindow]) -> str:
    """`174.4/764.7 GiB (22.8%)`"""
    gpus = list(gpus)
    used, total = sum(gpu.memory_mib for gpu in gpus), sum(gpu.memory_total_mib for gpu in gpus)
    return f"{_of(used, total)} ({used / total if total else 0:.1%})"


def power_of(gpus: Iterable[GpuWindow]) -> str:
    """`0.49 kW (10.3%)`"""
    gpus = list(gpus)
    drawn, limit = sum(gpu.watts or 0 for gpu in gpus), sum(gpu.limit_watts or 0 for gpu in gpus)
    return f"{drawn / 1000:.2f} kW ({drawn / limit if limit else 0:.1%})"


def _of(used_mib: float, total_mib: float) -> str:
    gib = total_mib / 1024
    if gib >= 1024:
        return f"{used_mib / 1024**2:.2f}/{total_mib / 1024**2:.2f} TiB"
    return f"{used_mib / 1024:.1f}/{gib:.1f} GiB"


def watts(value: float) -> str:
    """`456 W`, `3.44 kW`"""
    return f"{value:.0f} W" if value < 999.5 else f"{value / 1000:.2f} kW"
