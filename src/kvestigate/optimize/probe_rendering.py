"""A probe of GPUs as blocks: readings first, totals last. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.optimize.activity import (
    ACTIVE_FROM,
    HELD_MIB,
    POWER_SIGNAL,
    SATURATED_FROM,
    SIGNAL,
    Activity,
    GpuWindow,
    NodeWindow,
    Readiness,
    Verdict,
)
from kvestigate.optimize.probe import Probe
from kvestigate.optimize.summary_rendering import (
    forecast_blocks,
    memory_of,
    power_of,
    summary_facts,
)
from kvestigate.render.blocks import Block, Cell, Facts, Field, Table, Tone, table, text
from kvestigate.render.human import counted

_ACTIVITY = {
    Activity.IDLE: Tone.DIM,
    Activity.RESERVED_IDLE: Tone.WARN,
    Activity.LIGHT: Tone.PLAIN,
    Activity.ACTIVE: Tone.GOOD,
    Activity.SATURATED: Tone.GOOD,
}
_VERDICT = {
    Verdict.GHOST: Tone.BAD,
    Verdict.ACTIVE: Tone.GOOD,
    Verdict.NO_ALLOCATION: Tone.DIM,
    Verdict.NO_SAMPLES: Tone.WARN,
}


def probe_blocks(probe: Probe) -> Sequence[Block]:
    if not probe.nodes:
        return [text("no node has allocatable GPUs")]
    return [
        _rules(probe),
        _readings(probe),
        _accounts(probe.nodes),
        _overview(probe.nodes),
        *_problems(probe.nodes),
        text("totals (of GPUs that report the value)", Tone.STRONG),
        summary_facts(probe.summary),
        *_reserved(probe),
        *_ghosts(probe),
        *forecast_blocks(probe.summary.power),
        *_money(probe),
    ]


def _money(probe: Probe) -> Sequence[Block]:
    bill = probe.bill
    if not bill.total.gpus:
        return []
    sample = "1 sample" if probe.samples == 1 else f"{probe.samples} samples"
    rows = [*bill.by_activity.items(), ("all", bill.total)]
    blocks: list[Block] = [
        text(f"money a month, if the GPUs go on like this ({sample})", Tone.STRONG),
        table(
            rows,
            Field("activity", lambda row: row[0]),
            Field("GPUs", lambda row: f"{row[1].gpus:g}", number=True),
            Field("a month", lambda row: f"{row[1].month:,.0f} {bill.currency}", number=True),
        ),
    ]
    if bill.power:
        blocks.append(text(f"power: {bill.power:,.0f} {bill.currency} a month as measured"))
    blocks.append(text(f"by {bill.prices}; give yours with --prices FILE", Tone.DIM))
    blocks += [
        text(f"no price for model {model or '(unknown)'}", Tone.WARN) for model in bill.unpriced
    ]
    return blocks


def _rules(probe: Probe) -> Facts:
    window = f"{probe.samples} per GPU"
    if probe.samples > 1:
        window += f", {probe.interval:g} s apart (~{probe.seconds:.0f} s)"
    return Facts(
        (
            ("allocated", _stated(probe)),
            ("samples", window),
            ("threshold", f"{probe.ghost_threshold:g}"),
            (
                "verdict",
                "mean_util_pct = sum(sample.util) / len(samples); "
                "ghost if mean_util_pct / 100 < threshold",
            ),
            (
                "classes",
                f"saturated: SM >= {SATURATED_FROM:g}%; active: SM >= {ACTIVE_FROM:g}%; "
                f"light: SM or memory traffic >= {SIGNAL:g}%, "
                f"or power >= {POWER_SIGNAL:.0%} of its limit; "
                f"reserved-idle: none of these, {HELD_MIB} MiB or more in use; idle: none of these",
            ),
            ("bursty", "max - mean > 20 percentage points in the window"),
        )
    )


def _stated(probe: Probe) -> str | Cell:
    """The cluster that the allocation is of; a saved audit may be of another one."""
    source = f"by {probe.stated_by}, read at {probe.captured_at:%Y-%m-%d %H:%M:%S} UTC"
    if probe.stated_by == probe.server:
        return source
    return Cell(f"{source}; but the GPUs are of {probe.server}", Tone.BAD)


def _readings(probe: Probe) -> Table:
    extremes: tuple[Field[_Reading], ...] = (
        Field("max", lambda row: _figure(row[1].max, 0), number=True),
        Field("min", lambda row: _figure(row[1].min, 0), number=True),
    )
    return table(
        [(node, gpu) for node in probe.nodes for gpu in node.gpus],
        Field("node", lambda row: row[0].node),
        Field("gpu", lambda row: str(row[1].index), number=True),
        Field("SM%", lambda row: _figure(row[1].mean, 1), number=True),
        *(extremes if probe.samples > 1 else ()),
        Field("traffic%", lambda row: _figure(row[1].memory_traffic, 1), number=True, wide=True),
        Field("MiB", lambda row: f"{row[1].memory_mib:.0f}", number=True),
        Field("W", lambda row: _figure(row[1].watts, 0), number=True),
        Field("°C", lambda row: _figure(row[1].temperature, 0), number=True),
        Field("activity", lambda row: _activity(row[1].activity, row[1].bursty)),
        Field(
            "readings",
            lambda row: " ".join(f"{percent:g}" for percent in row[1].utilization) or "-",
            wide=True,
        ),
        Field("uuid", lambda row: row[1].uuid, wide=True),
        empty="no readings",
    )


_Reading = tuple[NodeWindow, GpuWindow]


def _accounts(nodes: Sequence[NodeWindow]) -> Table:
    """Allocated GPUs and readings of each node."""
    return table(
        nodes,
        Field("node", lambda row: row.node),
        Field("allocated", lambda row: str(row.stated), number=True),
        Field("mean", lambda row: _percent(row.mean), number=True),
        Field("max", lambda row: _percent(row.max), number=True),
        Field("verdict", lambda row: Cell(row.verdict.value, _VERDICT[row.verdict])),
        Field("pods", lambda row: ", ".join(row.pods) or "-"),
    )


def _overview(nodes: Sequence[NodeWindow]) -> Table:
    return table(
        nodes,
        Field("node", lambda row: row.node),
        Field("allocated", lambda row: f"{row.stated}/{row.capacity}", number=True),
        Field("SM%", lambda row: _figure(row.mean, 1), number=True),
        Field("GPU memory", lambda row: memory_of(row.gpus) if row.gpus else "-"),
        Field("power", lambda row: power_of(row.gpus) if row.gpus else "-"),
        Field("hottest", _hottest, number=True),
        Field("verdict", lambda row: Cell(row.verdict.value, _VERDICT[row.verdict])),
        Field("activity", lambda row: _activity(row.activity, any(gpu.bursty for gpu in row.gpus))),
    )


def _hottest(node: NodeWindow) -> str:
    temperatures = [gpu.temperature for gpu in node.gpus if gpu.temperature]
    return f"{max(temperatures):.0f}°C" if temperatures else "-"


def _problems(nodes: Sequence[NodeWindow]) -> Sequence[Block]:
    return [text(f"{node.node}: {node.problem}", Tone.WARN) for node in nodes if node.problem]


def _reserved(probe: Probe) -> Sequence[Block]:
    held = probe.summary.recoverable
    if not held.nodes:
        return []
    reserved = [node for node in probe.nodes if node.readiness is Readiness.RESERVED_IDLE]
    total = f"{held.memory_mib / 1024:.1f}/{held.memory_total_mib / 1024:.1f} GiB"
    gpus = counted(held.gpus, "allocated GPU")
    return [
        text(
            "reserved-idle nodes (GPU memory is in use, but nothing computes): consolidate or "
            "shrink the workloads",
            Tone.STRONG,
        ),
        table(
            reserved,
            Field("node", lambda row: row.node),
            Field("allocated", lambda row: str(row.stated), number=True),
            Field("GPU memory", lambda row: memory_of(row.gpus)),
            Field("pods", lambda row: ", ".join(row.pods) or "-"),
        ),
        text(f"-> recoverable capacity: {gpus} and {total} GPU memory"),
    ]


def _ghosts(probe: Probe) -> Sequence[Block]:
    ghosts = [node for node in probe.nodes if node.verdict is Verdict.GHOST]
    if not ghosts:
        return []
    single = probe.samples == 1
    heading = "ghost nodes"
    if single:
        heading += " (from a single sample: confirm with --samples 5)"
    return [
        text(heading, Tone.STRONG),
        table(
            ghosts,
            Field("node", lambda row: row.node),
            Field("allocated", lambda row: str(row.stated), number=True),
            Field("pods", lambda row: str(len(row.pods)), number=True),
            Field("mean", lambda row: _percent(row.mean), number=True),
            Field("max", lambda row: _percent(row.max), number=True),
            Field("threshold", lambda row: f"{probe.ghost_threshold:.1%}", number=True),
            Field("signal", lambda row: _signal(probe, row)),
        ),
    ]


def _signal(probe: Probe, ghost: NodeWindow) -> Cell:
    if probe.samples == 1:
        return Cell("1 sample", Tone.WARN)
    window = f"(N={probe.samples} over ~{probe.seconds:.0f}s)"
    if ghost.confident:
        return Cell(f"confident {window}", Tone.BAD)
    return Cell(f"not confident {window}: some readings are above the threshold", Tone.WARN)


def _activity(activity: Activity | None, bursty: bool) -> Cell:
    if activity is None:
        return Cell("unknown", Tone.DIM)
    return Cell(activity.value + (" bursty" if bursty else ""), _ACTIVITY[activity])


def _figure(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}%"
