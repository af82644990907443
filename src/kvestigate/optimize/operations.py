"""The operations of `optimize`. Operators only: the agents' gateway denies them by name."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from kvestigate.client.connect import connect
from kvestigate.errors import EXIT_CONFLICT, EXIT_FAILED, EXIT_OK, EXIT_TIMEOUT
from kvestigate.nodeops.evict import FAILED, LEAVING
from kvestigate.operation import (
    GROUP,
    Consequence,
    Context,
    Effect,
    Operation,
    Reach,
    Touched,
    touches_nothing,
)
from kvestigate.optimize import consolidation, fragmentation
from kvestigate.optimize.apply import Application, ApplyOptions, apply
from kvestigate.optimize.collect import FleetSource, read, require_readable
from kvestigate.optimize.consolidation import Consolidation, Tunables
from kvestigate.optimize.fragmentation import Fragmentation
from kvestigate.optimize.model import Fleet
from kvestigate.optimize.probe import Probe, ProbeOptions, probe
from kvestigate.optimize.probe_rendering import probe_blocks
from kvestigate.optimize.rendering import analysis_blocks, application_blocks, plan_blocks
from kvestigate.optimize.sickbay import GpuHealth, HealthOptions, check, health_blocks
from kvestigate.optimize.steps import KEPT
from kvestigate.optimize.waste import Waste, WasteOptions, waste
from kvestigate.optimize.waste_rendering import waste_blocks
from kvestigate.optimize.watching import Watched, WatchOptions, watch
from kvestigate.render.blocks import Block, text
from kvestigate.render.human import counted
from kvestigate.snapshot import scheduling


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    source: Annotated[FleetSource, GROUP]


@dataclass(frozen=True, slots=True)
class PlanOptions:
    source: Annotated[FleetSource, GROUP]
    tunables: Annotated[Tunables, GROUP] = field(default_factory=Tunables)


async def analyze(context: Context, options: AnalyzeOptions) -> Fragmentation:
    return fragmentation.analyze(await _fleet(context, options.source))


async def plan(context: Context, options: PlanOptions) -> Consolidation:
    fleet = await _fleet(context, options.source)
    if not options.source.live:
        return consolidation.plan(fleet, options.tunables)
    async with connect(context.access) as api:
        situation = await scheduling.read(api)
    require_readable(situation)
    return consolidation.plan(fleet, options.tunables, situation)


async def _fleet(context: Context, source: FleetSource) -> Fleet:
    """The cluster is needed only for a live source."""
    access = context.access if source.live else None
    return await read(access, source, context.progress)


async def _probe(context: Context, options: ProbeOptions) -> Probe:
    return await probe(context.access, options, context.via, context.progress)


async def _waste(context: Context, options: WasteOptions) -> Waste:
    return await waste(context.access, options, context.progress)


async def _health(context: Context, options: HealthOptions) -> GpuHealth:
    return await check(context.access, context.via, context.progress)


async def _watch(context: Context, options: WatchOptions) -> Watched:
    return await watch(context.access, options, context.progress)


def _watched(done: Watched) -> Sequence[Block]:
    return [text(f"{counted(done.looks, 'look')} added to {done.file}, which has {done.kept}")]


def _analysis(options: AnalyzeOptions, analysis: Fragmentation) -> Sequence[Block]:
    audit = options.source.audit
    source = "--live" if audit is None else f"--audit {shlex.quote(audit.name)}"
    return analysis_blocks(analysis, source)


def _exit_code(done: Application) -> int:
    if done.count(FAILED):
        return EXIT_FAILED
    if done.count(LEAVING):
        return EXIT_TIMEOUT
    return EXIT_CONFLICT if done.stopped or done.count(KEPT) else EXIT_OK


ANALYZE: Operation[AnalyzeOptions, Fragmentation] = Operation(
    name="optimize.analyze",
    summary="Show how the free GPUs are spread over the nodes.",
    description="Every number is shown with its definition. With --audit no cluster is needed.",
    examples=(
        "kvestigate optimize analyze --live",
        "kvestigate optimize analyze --audit cluster.audit.json",
    ),
    input=AnalyzeOptions,
    output=Fragmentation,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=analyze,
    json_file=True,
    render_for=_analysis,
)

PLAN: Operation[PlanOptions, Consolidation] = Operation(
    name="optimize.plan",
    summary="Show which pods to move so that nodes become empty.",
    description=(
        "Pods of nodes below --donor-max-util move to other partial nodes: the largest pod first, "
        "each to the fitting node with the fewest free GPUs. A node is emptied or not touched: "
        "pods that cannot be moved are listed with the reason. With --live, every rule of the "
        "scheduler is checked, and budgets and controllers, too. Nothing is changed."
    ),
    examples=(
        "kvestigate optimize plan --live",
        "kvestigate optimize plan --audit cluster.audit.json --min-free-nodes 2",
        "kvestigate optimize plan --live --donor-max-util 0.5 --pin 'research/sweep-*'",
    ),
    input=PlanOptions,
    output=Consolidation,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=plan,
    counts=True,
    json_file=True,
    render=plan_blocks,
)

PROBE: Operation[ProbeOptions, Probe] = Operation(
    name="optimize.probe-gpu",
    summary="Measure with nvidia-smi on every node how allocated GPUs are used.",
    description=(
        "Shows every reading, the use of compute, memory and power, nodes that are ghosts "
        "(allocated but idle), the power that they waste, and an energy forecast. Changes nothing. "
        "nvidia-smi runs on the hosts through the node-access DaemonSet."
    ),
    examples=(
        "kvestigate optimize probe-gpu --live",
        "kvestigate optimize probe-gpu --live --samples 5 --interval 2",
        "kvestigate optimize probe-gpu --audit cluster.audit.json --ghost-threshold 0.1",
    ),
    input=ProbeOptions,
    output=Probe,
    effect=Effect.READ,
    touches=lambda options: Touched(every_node=True),
    handler=_probe,
    reaches=Reach.HOSTS,
    counts=True,
    json_file=True,
    render=probe_blocks,
)

HEALTH: Operation[HealthOptions, GpuHealth] = Operation(
    name="optimize.health",
    summary="Show GPUs that are broken or run slower than they should.",
    description=(
        "Xid and ECC errors, row remaps, throttling, PCIe and NVLink, temperature, GPUs that fell "
        "off the bus: from the DCGM exporter where it tells of errors, otherwise from `nvidia-smi "
        "-q -x` or `amd-smi metric --json` on the hosts. Changes nothing. Exit code 1 if a GPU "
        "must not be used, 7 if the GPUs of a node could not be asked."
    ),
    examples=("kvestigate optimize health",),
    input=HealthOptions,
    output=GpuHealth,
    effect=Effect.READ,
    touches=lambda options: Touched(every_node=True),
    handler=_health,
    reaches=Reach.HOSTS,
    counts=True,
    json_file=True,
    render=health_blocks,
    exit_code=lambda health: (
        EXIT_FAILED if health.to_cordon else EXIT_TIMEOUT if health.unknown else EXIT_OK
    ),
)

WASTE: Operation[WasteOptions, Waste] = Operation(
    name="optimize.waste",
    summary="Show who holds GPUs for nothing, since when, and what that costs a month.",
    description=(
        "Utilization comes from the GPU exporter; of GPUs that no exporter measures it is unknown. "
        "A MIG instance costs its share of the GPU. Without --prices, a dated table of assumed "
        "prices is used. Changes nothing."
    ),
    examples=(
        "kvestigate optimize waste",
        "kvestigate optimize waste --by team --prices prices.yaml",
    ),
    input=WasteOptions,
    output=Waste,
    effect=Effect.READ,
    touches=lambda options: Touched(files=(options.history,) if options.history else ()),
    handler=_waste,
    counts=True,
    json_file=True,
    render=waste_blocks,
)

WATCH: Operation[WatchOptions, Watched] = Operation(
    name="optimize.watch",
    summary="Look at the GPUs again and again, and keep their use in a file.",
    description=(
        "Utilization comes from the GPU exporter, requests from the model servers (vLLM, TGI, "
        "Triton, SGLang) of pods that hold GPUs. `optimize waste --history FILE` then says since "
        "when GPUs are idle. The file keeps the latest 20,000 looks. Goes on until Ctrl-C."
    ),
    examples=(
        "kvestigate optimize watch --keep gpus.jsonl",
        "kvestigate optimize watch --every 5m --keep gpus.jsonl --looks 12",
    ),
    input=WatchOptions,
    output=Watched,
    effect=Effect.READ,
    touches=lambda options: Touched(files=(options.keep,)),
    handler=_watch,
    counts=True,
    render=_watched,
)

APPLY: Operation[ApplyOptions, Application] = Operation(
    name="optimize.apply",
    summary="Carry out a consolidation plan: move pods in waves until the donors are empty.",
    description=(
        "The plan is the one of `optimize plan`. While a wave is under way, all nodes on which its "
        "pods could start are cordoned, except for their target. Before each wave the rest of the "
        "plan is checked again; if it cannot be carried out any more, nothing further is evicted, "
        "and nodes that are not empty are uncordoned. PodDisruptionBudgets are respected. Exit "
        "code 6 if the goal was not reached, 7 if a pod did not terminate before --timeout."
    ),
    examples=(
        "kvestigate optimize apply --live --min-free-nodes 2",
        "kvestigate optimize apply --live --apply --i-understand-this-disrupts-workloads",
    ),
    input=ApplyOptions,
    output=Application,
    effect=Effect.DESTROY,
    consequence=Consequence.DISRUPTS_WORKLOADS,
    touches=lambda options: Touched(every_node=True),
    handler=apply,
    json_file=True,
    doing=lambda options: "waiting for",
    counts=True,
    render=application_blocks,
    pending=lambda done: not done.nothing_to_do,
    exit_code=_exit_code,
)
