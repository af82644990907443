"""The operations of `optimize`. Operators only: the agents' gateway denies them by name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kvestigate.errors import EXIT_CONFLICT, EXIT_FAILED, EXIT_OK, EXIT_TIMEOUT
from kvestigate.nodeops.evict import BLOCKED, FAILED, LEAVING
from kvestigate.operation import (
    Consequence,
    Context,
    Effect,
    Operation,
    Touched,
    touches_nothing,
)
from kvestigate.optimize import consolidation, fragmentation
from kvestigate.optimize.apply import Application, ApplyOptions, apply
from kvestigate.optimize.collect import FleetSource, read
from kvestigate.optimize.consolidation import Consolidation, Tunables
from kvestigate.optimize.fragmentation import Fragmentation
from kvestigate.optimize.model import Fleet
from kvestigate.optimize.probe import Probe, ProbeOptions, probe
from kvestigate.optimize.probe_rendering import probe_blocks
from kvestigate.optimize.rendering import analysis_blocks, application_blocks, plan_blocks
from kvestigate.optimize.steps import KEPT


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    source: FleetSource


@dataclass(frozen=True, slots=True)
class PlanOptions:
    source: FleetSource
    tunables: Tunables = field(default_factory=Tunables)


async def analyze(context: Context, options: AnalyzeOptions) -> Fragmentation:
    return fragmentation.analyze(await _fleet(context, options.source))


async def plan(context: Context, options: PlanOptions) -> Consolidation:
    return consolidation.plan(await _fleet(context, options.source), options.tunables)


async def _fleet(context: Context, source: FleetSource) -> Fleet:
    """The cluster is needed only for a live source."""
    access = context.access if source.live else None
    return await read(access, source, context.progress)


async def _probe(context: Context, options: ProbeOptions) -> Probe:
    return await probe(context.access, replace(options, access=context.via), context.progress)


def _exit_code(done: Application) -> int:
    if done.count(FAILED):
        return EXIT_FAILED
    if done.count(LEAVING):
        return EXIT_TIMEOUT
    if done.count(BLOCKED) or done.count(KEPT):
        return EXIT_CONFLICT
    # A wave that had no time at all asked nobody.
    return EXIT_TIMEOUT if done.stopped else EXIT_OK


ANALYZE: Operation[AnalyzeOptions, Fragmentation] = Operation(
    name="optimize.analyze",
    summary="Show how the free GPUs are spread over the nodes.",
    input=AnalyzeOptions,
    output=Fragmentation,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=analyze,
    render=analysis_blocks,
)

PLAN: Operation[PlanOptions, Consolidation] = Operation(
    name="optimize.plan",
    summary="Show which pods to move so that nodes become empty.",
    input=PlanOptions,
    output=Consolidation,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=plan,
    counts=True,
    render=plan_blocks,
)

PROBE: Operation[ProbeOptions, Probe] = Operation(
    name="optimize.probe-gpu",
    summary="Measure with nvidia-smi on every node how allocated GPUs are used.",
    input=ProbeOptions,
    output=Probe,
    effect=Effect.READ,
    touches=lambda options: Touched(every_node=True),
    handler=_probe,
    counts=True,
    render=probe_blocks,
)

APPLY: Operation[ApplyOptions, Application] = Operation(
    name="optimize.apply",
    summary="Carry out a consolidation plan: cordon the donors, evict pods in waves.",
    input=ApplyOptions,
    output=Application,
    effect=Effect.DESTROY,
    consequence=Consequence.DISRUPTS_WORKLOADS,
    touches=lambda options: Touched(every_node=True),
    handler=apply,
    doing=lambda options: "waiting for",
    counts=True,
    render=application_blocks,
    pending=lambda done: not done.nothing_to_do,
    exit_code=_exit_code,
)
