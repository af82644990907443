"""The operations of `optimize`. Operators only: the agents' gateway denies them by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvestigate.client.access import Access
from kvestigate.operation import Effect, Operation
from kvestigate.optimize import consolidation, fragmentation
from kvestigate.optimize.apply import Application, ApplyOptions, apply
from kvestigate.optimize.collect import FleetSource, read
from kvestigate.optimize.consolidation import Consolidation, Tunables
from kvestigate.optimize.fragmentation import Fragmentation
from kvestigate.optimize.probe import Probe, ProbeOptions, probe
from kvestigate.snapshot.source import Progress


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    source: FleetSource


@dataclass(frozen=True, slots=True)
class PlanOptions:
    source: FleetSource
    tunables: Tunables = field(default_factory=Tunables)


async def analyze(
    access: Access | None, options: AnalyzeOptions, progress: Progress | None = None
) -> Fragmentation:
    """`access` is needed only with `live`."""
    return fragmentation.analyze(await read(access, options.source, progress))


async def plan(
    access: Access | None, options: PlanOptions, progress: Progress | None = None
) -> Consolidation:
    """`access` is needed only with `live`."""
    return consolidation.plan(await read(access, options.source, progress), options.tunables)


ANALYZE = Operation(
    name="optimize.analyze",
    summary="Show how the free GPUs are spread over the nodes.",
    input=AnalyzeOptions,
    output=Fragmentation,
    effect=Effect.READ,
    handler=analyze,
)

PLAN = Operation(
    name="optimize.plan",
    summary="Show which pods to move so that nodes become empty.",
    input=PlanOptions,
    output=Consolidation,
    effect=Effect.READ,
    handler=plan,
)

PROBE = Operation(
    name="optimize.probe-gpu",
    summary="Measure with nvidia-smi on every node how allocated GPUs are used.",
    input=ProbeOptions,
    output=Probe,
    effect=Effect.READ,
    handler=probe,
)

APPLY = Operation(
    name="optimize.apply",
    summary="Carry out a consolidation plan: cordon the donors, evict pods in waves.",
    input=ApplyOptions,
    output=Application,
    effect=Effect.DESTROY,
    handler=apply,
)

OPERATIONS = (ANALYZE, PLAN, PROBE, APPLY)
